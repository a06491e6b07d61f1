//! What is sent, who handles it, and the account of it.

use super::{KEYS, deadline, index, millis};
use crate::support::fail;
use pointsman::group::Group;
use pointsman::prelude::*;
use pointsman::{Failure, Ledger};
use proptest::prelude::{Just, any, prop_oneof};
use proptest::strategy::Strategy;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a handler does. Places and keys are taken modulo their number, here and below.
#[derive(Debug, Clone)]
pub enum Act {
    Nothing,
    Fail {
        by_panic: bool,
    },
    Stop,
    Retire,
    Stash,
    /// From now on all is stashed, until the next `Unstash`.
    Hoard,
    Unstash,
    Tell(usize, Box<Act>),
    Ask(usize, Option<u64>),
    Later(u64),
    Watch(usize),
}

impl Act {
    /// With retiring in the place of stopping.
    pub fn calmed(self) -> Self {
        match self {
            Act::Stop => Act::Retire,
            Act::Tell(place, act) => Act::Tell(place, Box::new(act.calmed())),
            act => act,
        }
    }
}

pub fn act() -> impl Strategy<Value = Act> {
    let simple = prop_oneof![
        8 => Just(Act::Nothing),
        2 => any::<bool>().prop_map(|by_panic| Act::Fail { by_panic }),
        1 => Just(Act::Stop),
        4 => Just(Act::Retire),
        2 => Just(Act::Stash),
        1 => Just(Act::Hoard),
        3 => Just(Act::Unstash),
        1 => (0..50_u64).prop_map(Act::Later),
        1 => index().prop_map(Act::Watch),
        2 => (index(), deadline()).prop_map(|(place, limit)| Act::Ask(place, limit)),
    ];
    let simple = simple.boxed();
    let further = (index(), simple.clone()).prop_map(|(place, act)| Act::Tell(place, Box::new(act)));
    prop_oneof![6 => simple, 1 => further]
}

/// How one message ended, over all its copies.
#[derive(Debug, Default)]
pub struct Account {
    pub act: String,
    /// Nobody had a reason to refuse it when it was sent.
    pub is_sure: bool,
    /// A tick, a notice or an answer: it may go with its actor, or die where another dead letter is being told of.
    pub is_tick: bool,
    pub copies: usize,
    pub handled: usize,
    pub dead: usize,
    pub dropped: usize,
    pub handed_back: usize,
    pub unread: usize,
    /// It was in the stash of one who ended.
    pub was_left_in_stash: bool,
}

impl Account {
    pub fn ends(&self) -> usize {
        self.handled + self.dead + self.dropped + self.handed_back + self.unread
    }
}

/// What an actor has stashed, and what is to come next.
#[derive(Default)]
pub struct Stash {
    pub held: VecDeque<usize>,
    pub next: VecDeque<usize>,
}

impl Stash {
    pub fn unstash(&mut self) {
        self.held.append(&mut self.next);
        std::mem::swap(&mut self.held, &mut self.next);
    }
}

#[derive(Default)]
pub struct Books {
    pub accounts: Vec<Account>,
    /// Who lives, by path and `uid`.
    pub actors: BTreeMap<String, (ActorRef<Mail>, Stash)>,
    /// The last message that a receiver had of a sender, in each class.
    pub last: BTreeMap<(String, String, i64), usize>,
    /// Routees were told to leave: what they have left may have been routed again, out of order.
    pub has_changed: bool,
    /// How many have ended as they wished.
    pub retired: usize,
    /// How many wished to end since the system rested last. Some of them may not have ended.
    pub retiring: usize,
    /// What was wrong, told by those who must not panic.
    pub faults: Vec<String>,
}

impl Books {
    /// No answer is another's, and whoever was handled has one, unless it came too late.
    pub fn check_answer(&self, number: usize, answer: &Result<usize, AskError>) {
        let account = &self.accounts[number];
        assert!(answer.as_ref().map_or(true, |answer| *answer == number), "{number} got {answer:?}");
        let is_told = account.handled > 0 && account.copies == 1;
        let may_be = matches!(answer, Ok(_) | Err(AskError::Timeout { .. }));
        assert!(!is_told || may_be, "{number} was handled: {answer:?}");
    }

    /// All has ended as it should have, and the ledger says the same.
    pub fn check(&self, ledger: &Ledger, is_calm: bool) {
        assert!(self.faults.is_empty(), "{:#?}", self.faults);
        assert!(self.actors.is_empty(), "{:?} have not ended", self.actors.keys());
        for (number, account) in self.accounts.iter().enumerate() {
            assert_eq!(account.ends(), account.copies, "{number} ({}): {account:?}", account.act);
            let is_kept = is_calm && account.is_sure && !account.was_left_in_stash;
            assert!(!is_kept || account.handled > 0, "{number} ({}) is lost: {account:?}", account.act);
        }
        let sum = |row: fn(&Account) -> usize| self.accounts.iter().map(row).sum::<usize>() as u64;
        assert_eq!(ledger.handed_back, sum(|it| it.handed_back), "{ledger}");
        assert!(ledger.handled >= sum(|it| if it.is_tick { 0 } else { it.handled }), "{ledger}");
        // What dies while a dead letter is being told of is counted and not shown: an answer, a race's next attempt, and
        // what these push out of a mailbox.
        let may_hide = self.accounts.iter().any(|it| it.copies > 1 || it.is_tick);
        let counted = ledger.dead_lettered + ledger.dropped;
        let hidden = counted.checked_sub(sum(|it| it.dead + it.dropped)).expect("what is shown is counted");
        let unread = sum(|it| if it.copies == 1 && !it.is_tick { it.unread } else { 0 });
        let unread_max = if may_hide { hidden } else { 0 };
        assert!(unread <= unread_max, "{unread} vanished: {ledger} {:#?}", self.accounts);
    }
}

/// A place that was made.
#[derive(Clone)]
pub struct Station {
    pub to: ActorRef<Mail>,
    pub made: Made,
    /// It keeps the order of each sender.
    pub is_ordered: bool,
    pub own: Vec<ActorRef<Mail>>,
    pub others: Vec<usize>,
    /// It may refuse messages at any time, or was told to end.
    pub may_refuse: bool,
    /// Its routees share a queue.
    pub shares_queue: bool,
}

#[derive(Clone)]
pub enum Made {
    Actor,
    Router(Router<Mail>),
    Keyed(Group<Mail, usize>),
}

#[derive(Clone, Default)]
pub struct Town {
    pub books: Arc<Mutex<Books>>,
    pub stations: Arc<Mutex<Vec<Station>>>,
}

/// A message. Its end is noted where it is known, or else when it is dropped.
pub struct Letter {
    pub number: usize,
    pub act: Act,
    pub sender: String,
    pub is_ordered: bool,
    pub was_stashed: bool,
    pub has_ended: bool,
    pub town: Town,
}

#[derive(Clone, Message)]
pub enum Mail {
    Ask(Call<Letter>),
    Tell(Letter),
}

impl Request for Letter {
    type Reply = usize;
}

impl Letter {
    pub fn ends(&mut self, note: impl FnOnce(&mut Account)) {
        self.has_ended = true;
        note(&mut self.town.books().accounts[self.number]);
    }

    /// Its class in mailboxes that sort.
    pub fn rank(&self) -> i64 {
        (self.number % 2) as i64
    }
}

impl Clone for Letter {
    fn clone(&self) -> Self {
        self.town.books().accounts[self.number].copies += 1;
        let (act, sender, town) = (self.act.clone(), self.sender.clone(), self.town.clone());
        Self { act, sender, town, has_ended: false, ..*self }
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        if !self.has_ended {
            self.ends(|account| account.unread += 1);
        }
    }
}

impl Mail {
    pub fn letter(&self) -> &Letter {
        match self {
            Mail::Ask(call) => &call.request,
            Mail::Tell(letter) => letter,
        }
    }

    pub fn letter_mut(&mut self) -> &mut Letter {
        match self {
            Mail::Ask(call) => &mut call.request,
            Mail::Tell(letter) => letter,
        }
    }
}

impl Town {
    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn index(&self, place: usize) -> usize {
        place % self.stations.lock().unwrap().len()
    }

    pub fn station(&self, place: usize) -> Station {
        let index = self.index(place);
        self.stations.lock().unwrap()[index].clone()
    }

    pub fn letter(&self, sender: &str, act: Act, account: Account, is_ordered: bool) -> Letter {
        let mut books = self.books();
        let number = books.accounts.len();
        books.accounts.push(Account { act: format!("{act:?}"), copies: 1, ..account });
        let (sender, town) = (sender.to_owned(), self.clone());
        Letter { number, act, sender, is_ordered, was_stashed: false, has_ended: false, town }
    }

    pub fn letter_to(&self, station: &Station, sender: &str, act: Act) -> Letter {
        let is_sure = self.is_sure(station);
        self.letter(sender, act, Account { is_sure, ..Account::default() }, station.is_ordered)
    }

    /// That of a timer, a notice or an answer.
    pub fn tick(&self) -> Mail {
        Mail::Tell(self.letter("", Act::Nothing, Account { is_tick: true, ..Account::default() }, false))
    }

    /// Whether whoever may be chosen there takes a message.
    pub fn is_sure(&self, station: &Station) -> bool {
        let own = station.own.iter().any(|routee| !routee.is_closed());
        !station.may_refuse
            && !station.to.is_closed()
            && (own || !station.others.is_empty() || !matches!(station.made, Made::Router(_)))
            && station.others.iter().all(|other| self.is_sure(&self.station(*other)))
    }

    /// Who are the routees of a place now.
    pub fn look_at(&self, place: usize) {
        let Made::Router(router) = self.station(place).made else { return };
        let (index, routees) = (self.index(place), router.routees().unwrap_or_default());
        let mut stations = self.stations.lock().unwrap();
        let of_station = |routee: &ActorRef<Mail>| {
            let is = |station: &Station| match &station.made {
                Made::Keyed(group) => station.to == *routee || (0..KEYS).any(|key| group.key(key) == *routee),
                _ => station.to == *routee,
            };
            stations.iter().position(is)
        };
        let others = routees.iter().filter_map(of_station).collect();
        let own = routees.iter().filter(|routee| of_station(routee).is_none()).cloned().collect();
        (stations[index].own, stations[index].others) = (own, others);
    }
}

/// Whoever handles messages.
pub struct Worker {
    pub town: Town,
    pub hoards: bool,
    /// A message has said so.
    pub retires: bool,
}

pub fn name(ctx: &Context<Mail>) -> String {
    format!("{}#{}", ctx.path(), ctx.me().uid())
}

impl Worker {
    pub fn new(town: &Town) -> Self {
        Self { town: town.clone(), hoards: false, retires: false }
    }

    /// Checks that it is this message's turn.
    pub fn check(&self, letter: &Letter, ctx: &Context<Mail>) {
        let mut books = self.town.books();
        let number = letter.number;
        if let Some((_, stash)) = books.actors.get_mut(&name(ctx)) {
            if let Some(next) = stash.next.pop_front() {
                if next != number {
                    let fault = format!("{} got {number} before {next}, which was unstashed", ctx.path());
                    books.faults.push(fault);
                }
            }
        }
        if !letter.is_ordered || letter.was_stashed || books.has_changed {
            return;
        }
        let way = (ctx.path().to_string(), letter.sender.clone(), letter.rank());
        if let Some(before) = books.last.insert(way, number).filter(|before| *before > number) {
            books.faults.push(format!("{} got {before} of {} before {number}", ctx.path(), letter.sender));
        }
    }
}

impl Actor for Worker {
    type Message = Mail;

    fn started(&mut self, ctx: &mut Context<Mail>) -> HandlerResult {
        let mut books = self.town.books();
        books.actors.entry(name(ctx)).or_insert_with(|| (ctx.me().clone(), Stash::default()));
        Ok(())
    }

    fn receive(&mut self, mut mail: Mail, ctx: &mut Context<Mail>) -> HandlerResult {
        self.check(mail.letter(), ctx);
        let letter = mail.letter_mut();
        let is_stashed = match letter.act {
            Act::Unstash => false,
            Act::Stash => !letter.was_stashed,
            _ => self.hoards,
        };
        if is_stashed {
            letter.was_stashed = true;
            let number = letter.number;
            ctx.stash(mail).expect("there is room in the stash");
            self.town.books().actors.get_mut(&name(ctx)).expect("it lives").1.held.push_back(number);
            return Ok(());
        }
        letter.ends(|account| account.handled += 1);
        if matches!(letter.act, Act::Retire) && !self.retires {
            self.retires = true;
            self.town.books().retiring += 1;
        }
        let (number, act) = (letter.number, letter.act.clone());
        if let Mail::Ask(call) = mail {
            call.answer(|_| number);
        }
        let town = self.town.clone();
        match act {
            Act::Nothing | Act::Stash => {}
            Act::Fail { by_panic } => return Err(fail("as told", by_panic)),
            Act::Stop => ctx.stop(),
            Act::Retire => ctx.passivate(),
            Act::Hoard => self.hoards = true,
            Act::Unstash => {
                self.hoards = false;
                if let Some((_, stash)) = town.books().actors.get_mut(&name(ctx)) {
                    stash.unstash();
                }
                ctx.unstash_all();
            }
            Act::Tell(place, act) => {
                let station = town.station(place);
                station.to.tell(town.letter_to(&station, &name(ctx), *act));
            }
            Act::Ask(place, limit) => {
                let station = town.station(place);
                let letter = town.letter_to(&station, &name(ctx), Act::Nothing);
                let asked = letter.number;
                let answer = move |answer: Result<usize, AskError>| {
                    if let Some(other) = answer.ok().filter(|answer| *answer != asked) {
                        town.books().faults.push(format!("{other} was the answer to {asked}"));
                    }
                    town.tick()
                };
                match limit {
                    Some(limit) => ctx.ask_within(&station.to, letter, millis(limit), answer),
                    None => ctx.ask(&station.to, letter, answer),
                }
            }
            Act::Later(delay) => _ = ctx.after(millis(delay), town.tick()),
            Act::Watch(place) => _ = ctx.watch_with(&town.station(place).to, town.tick()),
        }
        Ok(())
    }

    fn restarting(&mut self, _: &Failure, ctx: &mut Context<Mail>) -> HandlerResult {
        // What it has stashed goes back in front of the mailbox.
        if let Some((_, stash)) = self.town.books().actors.get_mut(&name(ctx)) {
            stash.unstash();
        }
        Ok(())
    }

    fn stopped(&mut self, ctx: &mut Context<Mail>) {
        let mut books = self.town.books();
        books.retired += usize::from(self.retires);
        let Some((_, stash)) = books.actors.remove(&name(ctx)) else { return };
        for number in stash.held.into_iter().chain(stash.next) {
            books.accounts[number].was_left_in_stash = true;
        }
    }
}
