//! The factories of a node: the types of actors that other nodes may make here.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::{LifeStage, Recipe};
use crate::actor::spawn::{Plan, spawn_deployed};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::system::SystemCore;
use crate::failure::Failure;
use crate::remote::control_message::NumberedMessage;
use crate::remote::decoder::Decoder;
use crate::remote::deploy::Deploy;
use crate::remote::deployed_table::Begin;
use crate::remote::link::Link;
use crate::remote::wire::{NAME_MAX, is_name};
use crate::util::debug_by_display::debug_by_display;
use serde::de::DeserializeOwned;
use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Makes an actor of arguments, and enters it before its first turn. The error says why there is none.
pub(crate) type Make = dyn Fn(&Arc<Link>, &[u8], NewActor<'_>) -> Result<(), String> + Send + Sync;

/// An actor that is to be made.
pub(crate) struct NewActor<'a> {
    pub(crate) plan: Plan,
    pub(crate) entry: Entry<'a>,
}

/// The entry of a new actor in the table of those that a peer has made.
pub(crate) struct Entry<'a> {
    pub(crate) uid: u32,
    pub(crate) suspensions: u32,
    /// Whether the actor has its first turn later.
    pub(crate) is_held: bool,
    pub(crate) enter: &'a mut dyn FnMut(AnyActorRef, Option<Begin>),
}

impl Entry<'_> {
    /// Enters an actor before its first turn, which it has now unless it is held back.
    pub(crate) fn enter(self, actor: AnyActorRef, begin: impl FnOnce() + Send + 'static) {
        if self.is_held {
            (self.enter)(actor, Some(Box::new(begin)));
        } else {
            (self.enter)(actor, None);
            begin();
        }
    }
}

/// A factory that is known to a node, without its type.
pub(crate) struct Factory {
    /// The type of its actors, or of the function that describes its routers.
    pub(crate) rust_name: &'static str,
    pub(crate) make: Box<Make>,
    /// The factory of routers as the routers know it; `None` for one of actors.
    pub(crate) of_routers: Option<Arc<dyn Any + Send + Sync>>,
}

/// A factory cannot be registered.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum FactoryError {
    /// The name is none.
    Name { name: String, rust_name: &'static str },
    /// Another type, or the same, has this name.
    Taken { name: String, by: &'static str, rust_name: &'static str },
}

impl fmt::Display for FactoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FactoryError::Name { name, rust_name } => write!(
                f,
                "{name:?} of {rust_name} is no name of a factory: use 1 to {NAME_MAX} ASCII letters, digits, '.', '_' and \
                 '-', the first of them a letter or digit"
            ),
            FactoryError::Taken { name, by, rust_name } if by == rust_name => {
                write!(f, "the factory {name:?} of {rust_name} is registered already: register each once")
            }
            FactoryError::Taken { name, by, rust_name } => write!(
                f,
                "the factory {name:?} is that of {by} and cannot be that of {rust_name} too: rename one of them"
            ),
        }
    }
}

impl std::error::Error for FactoryError {}

debug_by_display! { FactoryError }

/// All factories of a node. They are registered before the node starts.
#[derive(Default)]
pub(crate) struct Factories {
    by_name: BTreeMap<String, Factory>,
}

impl Factories {
    pub(crate) fn register<A: Deploy>(&mut self) -> Result<(), FactoryError> {
        let (rust_name, make) = (type_name::<A>(), Box::new(make::<A>));
        self.add(A::FACTORY, Factory { rust_name, make, of_routers: None })
    }

    pub(crate) fn add(&mut self, name: &str, factory: Factory) -> Result<(), FactoryError> {
        let (name, rust_name) = (name.to_owned(), factory.rust_name);
        if !is_name(&name) {
            return Err(FactoryError::Name { name, rust_name });
        }
        if let Some(had) = self.by_name.get(&name) {
            return Err(FactoryError::Taken { name, by: had.rust_name, rust_name });
        }
        self.by_name.insert(name, factory);
        Ok(())
    }

    /// The factory of routers of this name, as the routers know it.
    pub(crate) fn of_routers(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.by_name.get(name)?.of_routers.clone()
    }

    /// Makes an actor by the factory of this name, from the arguments of a peer.
    pub(crate) fn make(
        &self,
        name: &str,
        link: &Arc<Link>,
        args: &[u8],
        new: NewActor<'_>,
    ) -> Result<(), String> {
        match self.by_name.get(name) {
            Some(factory) => (factory.make)(link, args, new),
            None => Err(format!(
                "the node has no factory {name:?}: register it there by `Node::factory`; it has {:?}",
                self.by_name.keys().collect::<Vec<_>>()
            )),
        }
    }
}

/// Tells the peer how often an actor that it has made here was restarted.
pub(crate) struct RestartTeller {
    link: Arc<Link>,
    uid: u32,
    /// The actor was completely created.
    is_created: bool,
}

impl RestartTeller {
    pub(crate) fn new(link: &Arc<Link>, uid: u32) -> Self {
        Self { link: link.clone(), uid, is_created: false }
    }

    /// The actor has reached a stage of its life.
    pub(crate) fn reached(&mut self, stage: LifeStage) {
        if stage == LifeStage::Started && std::mem::replace(&mut self.is_created, true) {
            self.link.hub.send_numbered(&self.link, NumberedMessage::Restarted { uid: self.uid });
        }
    }
}

/// Makes the state of a deployed actor, from the same arguments each time.
struct FromArgs<A: Deploy> {
    args: A::Args,
    restarts: RestartTeller,
}

impl<A: Deploy> Recipe<A> for FromArgs<A> {
    // The parent tells the other node of the end.
    const IS_FOSTERED: bool = true;
    const IS_DEPLOYED: bool = true;

    fn make(&mut self, ctx: &mut Context<<A as Actor>::Message>) -> Result<A, Failure> {
        A::deploy(&self.args, ctx)
    }

    fn reached_stage(&mut self, stage: LifeStage, _: &SystemCore) {
        self.restarts.reached(stage);
    }
}

/// Reads the arguments that a peer has sent for a factory.
pub(crate) fn read_args<T: DeserializeOwned>(
    factory: &str,
    link: &Arc<Link>,
    args: &[u8],
) -> Result<T, String> {
    let read = Decoder::default().read::<T>(link, std::iter::empty(), args);
    read.map_err(|error| format!("the arguments of the factory {factory:?} cannot be read: {error}"))
}

fn make<A: Deploy>(link: &Arc<Link>, args: &[u8], new: NewActor<'_>) -> Result<(), String> {
    let NewActor { plan, entry } = new;
    let args = read_args::<A::Args>(A::FACTORY, link, args)?;
    let recipe = FromArgs::<A> { args, restarts: RestartTeller::new(link, entry.uid) };
    let mut held = spawn_deployed::<A, _>(plan, entry.uid, recipe).map_err(|error| error.to_string())?;
    held.suspend(entry.suspensions);
    entry.enter(held.actor().any_local(), move || drop(held.start()));
    Ok(())
}
