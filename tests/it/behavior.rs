//! Become and unbecome.

use pointsman::pattern::{Behavior, Behaviors, Handled};
use pointsman::prelude::*;
use std::time::Duration;

/// Longer than anything here takes; reached only by a test that fails.
const LONG: Duration = Duration::from_secs(30);

enum Msg {
    /// Who answers?
    Who(ReplyTo<&'static str>),
    Push(&'static str),
    Replace(&'static str),
    Unbecome,
    Fail,
    /// Nobody knows this.
    Strange(ReplyTo<&'static str>),
}

struct Player {
    behaviors: Behaviors<Player>,
}

fn named(name: &'static str) -> Behavior<Player> {
    Behavior::partial(move |_: &mut Player, message, _: &mut Context<Msg>| match message {
        Msg::Who(reply_to) => {
            let _ = reply_to.send(name);
            Ok(Handled::Handled)
        }
        other => Ok(Handled::Unhandled(other)),
    })
    .or_else(Player::change)
}

impl Player {
    /// Already another one when it is made.
    fn new() -> Self {
        let mut behaviors = Behaviors::new(named("initial"));
        behaviors.replace(named("made"));
        Self { behaviors }
    }

    fn change(&mut self, message: Msg, _: &mut Context<Msg>) -> Result<Handled<Msg>, Failure> {
        match message {
            Msg::Push(name) => self.behaviors.push(named(name)),
            Msg::Replace(name) => self.behaviors.replace(named(name)),
            Msg::Unbecome => self.behaviors.unbecome(),
            Msg::Fail => return Err(Failure::msg("as told")),
            other => return Ok(Handled::Unhandled(other)),
        }
        Ok(Handled::Handled)
    }
}

impl Actor for Player {
    type Message = Msg;
    fn receive(&mut self, message: Msg, ctx: &mut Context<Msg>) -> HandlerResult {
        match self.behaviors.current().handle(self, message, ctx)? {
            Handled::Handled => {}
            Handled::Unhandled(Msg::Strange(reply_to)) => {
                let _ = reply_to.send("unhandled");
            }
            Handled::Unhandled(_) => return Err(Failure::msg("what is that?")),
        }
        Ok(())
    }
}

fn who(player: &ActorRef<Msg>) -> &'static str {
    player.ask_with(Msg::Who).within(LONG).wait().unwrap()
}

fn play(name: &str, run: impl FnOnce(&ActorRef<Msg>)) {
    let system = System::builder(name).build().unwrap();
    let player = system.spawn(Player::new).unwrap();
    run(&player);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn a_recipe_may_begin_with_another_behaviour_and_the_initial_one_lies_below() {
    play("begin", |player| {
        assert_eq!(who(player), "made");
        for _ in 0..3 {
            player.tell(Msg::Unbecome);
            assert_eq!(who(player), "initial");
        }
    });
}

#[test]
fn replace_takes_the_place_of_the_top_and_push_goes_above_it() {
    play("stack", |player| {
        player.tell(Msg::Push("second"));
        player.tell(Msg::Push("third"));
        assert_eq!(who(player), "third");
        player.tell(Msg::Replace("other third"));
        assert_eq!(who(player), "other third");
        let mut names = Vec::new();
        for _ in 0..3 {
            player.tell(Msg::Unbecome);
            names.push(who(player));
        }
        assert_eq!(names, ["second", "made", "initial"]);
    });
}

#[test]
fn a_restart_forgets_what_became_of_the_actor() {
    play("restart", |player| {
        player.tell(Msg::Push("second"));
        player.tell(Msg::Fail);
        assert_eq!(who(player), "made");
    });
}

#[test]
fn what_no_handler_takes_comes_back() {
    play("strange", |player| {
        assert_eq!(player.ask_with(Msg::Strange).within(LONG).wait(), Ok("unhandled"));
        assert_eq!(who(player), "made");
    });
}

#[test]
fn the_first_handler_that_takes_a_message_handles_it() {
    let deaf: Behavior<Player> =
        Behavior::partial(|_: &mut Player, message, _: &mut Context<Msg>| Ok(Handled::Unhandled(message)));
    let total = Behavior::total(|_: &mut Player, message, _: &mut Context<Msg>| {
        if let Msg::Strange(reply_to) = message {
            let _ = reply_to.send("handled");
        }
        Ok(())
    });
    // Two would answer who they are, and the last one takes everything.
    let chained = deaf.or_behave(&named("first")).or_behave(&named("second")).or_behave(&total);
    let system = System::builder("chained").build().unwrap();
    let player = system.spawn(move || Player { behaviors: Behaviors::new(chained.clone()) }).unwrap();
    assert_eq!(who(&player), "first");
    assert_eq!(player.ask_with(Msg::Strange).within(LONG).wait(), Ok("handled"));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
