//! Questions to one of several, to all of them, and to one after the other, whose routees come, go, and fail. Each has
//! one outcome.

use crate::books::{Books, Count};
use crate::dice::Dice;
use crate::parcel::Pen;
use crate::scene::{Ground, Scene};
use pointsman::Ask;
use pointsman::prelude::*;
use pointsman::routing::{RouterPlan, RoutingLogic, ScatterGatherFirstCompleted, TailChopping};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// Questions open at a time, for each queue of them.
const OPEN_MAX: usize = 64;
const QUEUES: usize = 8;
const LIMIT: Duration = Duration::from_millis(50);

/// Counts that it was made and is gone.
struct Witness(&'static Books);

impl Witness {
    fn new(books: &'static Books) -> Self {
        books.count(Count::Made, 1);
        Self(books)
    }
}

impl Clone for Witness {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.count(Count::Gone, 1);
    }
}

#[derive(Clone)]
struct Question(Witness);

impl Request for Question {
    type Reply = (bool, Witness);
    fn is_success(reply: &Self::Reply) -> bool {
        reply.0
    }
}

/// Answers most questions, some by what is no success, some late, some not at all; and fails.
struct Clerk {
    dice: Dice,
    kept: VecDeque<Call<Question>>,
}

impl Actor for Clerk {
    type Message = Call<Question>;
    fn receive(&mut self, call: Call<Question>, _: &mut Context<Call<Question>>) -> HandlerResult {
        match self.dice.roll(40) {
            0 => call.answer(|Question(witness)| (false, witness)),
            1 => drop(call),
            // Longer than most questions are open.
            2 => self.kept.push_back(call),
            3 => return Err(Failure::msg("as told")),
            _ => call.answer(|Question(witness)| (true, witness)),
        }
        if self.kept.len() > 32 {
            self.kept.pop_front();
        }
        Ok(())
    }
}

/// Questions that wait for their outcomes.
type Open = VecDeque<Ask<(bool, Witness)>>;

pub struct Questions {
    books: &'static Books,
    routers: Vec<Router<Call<Question>>>,
    open: Vec<Mutex<Open>>,
}

impl Questions {
    pub fn new(ground: &Ground, _: &mut Dice) -> Result<Self, SpawnError> {
        let plan = |kind: &str| {
            ground.system.router(&ground.name(format_args!("questions-{kind}"))).pool(
                4,
                |ctx: &mut Context<Call<Question>>| Clerk {
                    dice: Dice::new(ctx.me().uid().into()),
                    kept: VecDeque::new(),
                },
            )
        };
        let routers = vec![
            settled(plan("one"))?,
            settled(plan("gather").logic(ScatterGatherFirstCompleted::within(LIMIT)))?,
            settled(plan("chop").logic(TailChopping::within(LIMIT).interval(Duration::from_millis(1))))?,
        ];
        Ok(Self { books: ground.books, routers, open: (0..QUEUES).map(|_| Mutex::default()).collect() })
    }

    fn end(&self, ask: Ask<(bool, Witness)>) {
        let outcome = if ask.wait().is_ok() { Count::Answered } else { Count::Failed };
        self.books.count(outcome, 1);
    }
}

fn settled<L: RoutingLogic<Call<Question>>>(
    plan: RouterPlan<Call<Question>, L>,
) -> Result<Router<Call<Question>>, SpawnError> {
    plan.stay_when_empty()
        .on_failure(Strategy::decide(|_| Directive::Restart).quiet())
        .head_dispatcher("management")
        .spawn()
}

impl Scene for Questions {
    fn send(&self, _: &mut Pen, dice: &mut Dice) -> bool {
        let Ok(mut open) = self.open[dice.roll(QUEUES)].try_lock() else { return true };
        for _ in 0..16 {
            let router = dice.pick(&self.routers);
            self.books.count(Count::Asked, 1);
            let ask = router.ask(Question(Witness::new(self.books))).within(LIMIT);
            if dice.hits(1, 50) {
                // Nobody waits for it to the end.
                drop(ask);
                self.books.count(Count::Failed, 1);
                continue;
            }
            open.push_back(ask);
            if open.len() > OPEN_MAX {
                open.pop_front().into_iter().for_each(|ask| self.end(ask));
            }
        }
        true
    }

    fn change(&self, dice: &mut Dice) {
        let router = dice.pick(&self.routers);
        match dice.roll(4) {
            0..3 => drop(router.resize_to(1 + dice.roll(12))),
            _ => drop(router.routees().map(|routees| routees.first().map(ActorRef::poison))),
        }
    }

    fn calm(&self) {
        for open in &self.open {
            let asks = std::mem::take(&mut *open.lock().expect("nobody panics with it"));
            asks.into_iter().for_each(|ask| self.end(ask));
        }
    }

    fn population(&self) -> Option<usize> {
        Some(0)
    }
}
