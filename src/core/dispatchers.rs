//! The dispatchers of a single system, by their names and aliases, and the placement of a new actor.

use crate::core::error::SpawnError;
use crate::core::home::Home;
use crate::dispatch::dispatcher::{Dispatcher, DispatcherKind};
use crate::dispatch::on_demand::{EnterError, OnDemand};
use crate::dispatch::running::Running;
use crate::measure::meter::Meter;
use crate::measure::pulse::Pulse;
use crate::path::error::NameError;
use crate::scheduler::error::StartError;
use crate::settings::build_error::BuildError;
#[cfg(all(feature = "net", not(pointsman_loom)))]
use crate::{scheduler::pool::Pool, sync::Arc};
use std::collections::BTreeMap;
use std::sync::Arc as StdArc;

/// The dispatcher of actors that name none.
pub(crate) const DEFAULT: &str = "default";

/// The dispatcher of the engine's own actors; the default one unless it is declared.
pub(crate) const INTERNAL: &str = "internal";

/// The largest number of steps from an alias to a dispatcher; Akka's bound.
const ALIAS_DEPTH_MAX: usize = 20;

/// The declarations that the system's builder was given.
#[derive(Default)]
pub(crate) struct Declared {
    pub dispatchers: Vec<(String, Dispatcher)>,
    /// Each alias with the name that it stands for.
    pub aliases: Vec<(String, String)>,
    /// Runs all actors, in place of the dispatchers.
    #[cfg(feature = "testkit")]
    pub stepper: Option<StdArc<dyn crate::dispatch::stepping::Stepper>>,
}

/// All dispatchers, whether their threads run or not.
pub(crate) struct Dispatchers {
    /// Sorted by their names.
    all: Vec<(String, Dispatch)>,
    meter: StdArc<Meter>,
    /// The index of the default dispatcher: needed for nearly every actor.
    default: usize,
    /// Each alias with the dispatcher at the end of its chain.
    aliases: BTreeMap<String, String>,
}

pub(crate) enum Dispatch {
    /// The threads run as long as the system. Cells point to the placement, so it stays where it is. There is none
    /// where each actor has a thread of its own.
    Lasting { running: Running, home: Option<Box<Home>> },
    /// The threads run while the dispatcher has actors.
    OnDemand(StdArc<OnDemand>),
}

impl Dispatchers {
    /// Returns the workers of the default dispatcher, if they steal from each other and run as long as the system.
    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub(crate) fn default_pool(&self) -> Option<&Arc<Pool>> {
        match &self.all[self.default].1 {
            Dispatch::Lasting { running: Running::WorkStealing(pool), .. } => Some(pool),
            _ => None,
        }
    }
}

/// The placement of a new actor.
pub(crate) struct ResolvedPlacement {
    /// The home for the cell; alive as long as the system, or as `own` if there is one.
    pub home: *const Home,
    /// Not in a `Box`: a move of a `Box` asserts that nothing else points into it.
    pub own: Option<StdArc<OwnedPlacement>>,
}

/// A placement that belongs to a single actor, to be released once.
pub(crate) struct OwnedPlacement {
    home: Home,
    entered: Option<StdArc<OnDemand>>,
}

impl Declared {
    /// Starts the threads; their names contain the name of `system`. The builder counts as an actor of the threads on
    /// demand, and leaves them when the system is complete.
    ///
    /// # Errors
    ///
    /// [`BuildError`]; no thread is left then.
    pub(crate) fn start(mut self, system: &str, meter: &StdArc<Meter>) -> Result<Dispatchers, BuildError> {
        if !self.names().any(|name| name == DEFAULT) {
            self.dispatchers.push((DEFAULT.to_owned(), Dispatcher::work_stealing()));
        }
        self.check_names()?;
        for (name, recipe) in &self.dispatchers {
            if let Some(setting) = recipe.foreign_setting() {
                return Err(BuildError::DispatcherSetting {
                    name: name.clone(),
                    kind: recipe.kind(),
                    setting,
                });
            }
        }
        let follow = |(alias, _): &(String, String)| Ok((alias.clone(), self.follow(alias)?));
        let aliases = self.aliases.iter().map(follow).collect::<Result<_, _>>()?;
        let mut started = Dispatchers { all: Vec::new(), meter: meter.clone(), default: 0, aliases };
        for (name, recipe) in std::mem::take(&mut self.dispatchers) {
            match self.start_one(format!("{system}-{name}"), recipe, meter) {
                Ok(dispatch) => started.all.push((name, dispatch)),
                Err(error) => {
                    started.end();
                    return Err(BuildError::Dispatcher { name, error });
                }
            }
        }
        started.all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let default = started.aliases.get(DEFAULT).map_or(DEFAULT, String::as_str);
        started.default = started.position(default).expect("it is declared, or was added above");
        Ok(started)
    }

    fn start_one(
        &self,
        name: String,
        recipe: Dispatcher,
        meter: &StdArc<Meter>,
    ) -> Result<Dispatch, StartError> {
        #[cfg(feature = "testkit")]
        if let Some(stepper) = &self.stepper {
            return Ok(Dispatch::stepping(stepper, recipe.kind(), meter));
        }
        Dispatch::start(name, recipe, meter)
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        let dispatchers = self.dispatchers.iter().map(|(name, _)| name);
        dispatchers.chain(self.aliases.iter().map(|(alias, _)| alias))
    }

    /// Checks the names, which become part of the names of threads.
    fn check_names(&self) -> Result<(), BuildError> {
        let mut seen = std::collections::BTreeSet::new();
        for name in self.names() {
            let bad = name.char_indices().find(|(_, character)| character.is_control());
            if let Some((position, character)) = bad {
                let error = NameError::Character { name: name.clone(), character, position };
                return Err(BuildError::DispatcherName(error));
            }
            if name.is_empty() {
                return Err(BuildError::DispatcherName(NameError::Empty));
            }
            if !seen.insert(name) {
                return Err(BuildError::DuplicateDispatcher { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Returns the dispatcher at the end of an alias's chain.
    fn follow(&self, alias: &str) -> Result<String, BuildError> {
        let mut chain = vec![alias.to_owned()];
        loop {
            let last = &chain[chain.len() - 1];
            if self.dispatchers.iter().any(|(name, _)| name == last) {
                return Ok(last.clone());
            }
            let Some((_, target)) = self.aliases.iter().find(|(alias, _)| alias == last) else {
                let known = self.names().cloned().collect();
                return Err(BuildError::AliasOfNothing { chain, known });
            };
            let is_circle = chain.contains(target);
            chain.push(target.clone());
            if is_circle {
                return Err(BuildError::AliasCircle { chain });
            }
            if chain.len() > 1 + ALIAS_DEPTH_MAX {
                return Err(BuildError::AliasTooLong { chain, max: ALIAS_DEPTH_MAX });
            }
        }
    }
}

impl Dispatchers {
    /// Returns the dispatcher of this name or alias.
    ///
    /// # Errors
    ///
    /// [`SpawnError::UnknownDispatcher`].
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Dispatch, SpawnError> {
        match name {
            None => Ok(&self.all[self.default].1),
            Some(name) => match self.position(self.resolve(Some(name))) {
                Some(position) => Ok(&self.all[position].1),
                None => {
                    let known = self.all.iter().map(|(name, _)| name).chain(self.aliases.keys()).cloned();
                    Err(SpawnError::UnknownDispatcher { name: name.to_owned(), known: known.collect() })
                }
            },
        }
    }

    /// Returns the name of the dispatcher that this name or alias stands for.
    pub(crate) fn resolve<'a>(&'a self, name: Option<&'a str>) -> &'a str {
        let Some(name) = name else { return &self.all[self.default].0 };
        let name = self.aliases.get(name).map_or(name, String::as_str);
        let is_default = name == INTERNAL && self.position(INTERNAL).is_none();
        // Through the alias that the default may be.
        if is_default { self.resolve(None) } else { name }
    }

    /// Returns the index of the dispatcher of this very name.
    fn position(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|(known, _)| known == name)
    }

    /// Returns the placement of a new actor that names this dispatcher.
    ///
    /// # Errors
    ///
    /// There is no dispatcher of that name, a thread that the actor needs cannot be started, or the system has shut
    /// down.
    #[inline]
    pub(crate) fn place(&self, name: Option<&str>, system: &str) -> Result<ResolvedPlacement, SpawnError> {
        if name.is_some() {
            return self.place_by_name(name, system);
        }
        if let Dispatch::Lasting { home: Some(home), .. } = &self.all[self.default].1 {
            return Ok(ResolvedPlacement { home: &raw const **home, own: None });
        }
        self.place_by_name(name, system)
    }

    #[inline(never)]
    fn place_by_name(&self, name: Option<&str>, system: &str) -> Result<ResolvedPlacement, SpawnError> {
        let (placement, entered) = match self.find(name)? {
            Dispatch::Lasting { home: Some(home), .. } => {
                return Ok(ResolvedPlacement { home: &raw const **home, own: None });
            }
            Dispatch::Lasting { running, home: None } => {
                (running.place_task().map_err(SpawnError::Thread)?, None)
            }
            Dispatch::OnDemand(threads) => match threads.enter() {
                Ok(placement) => (placement, Some(threads.clone())),
                Err(EnterError::Start(error)) => return Err(SpawnError::Thread(error)),
                Err(EnterError::Stopped) => {
                    return Err(SpawnError::ShutDown { system: system.to_owned() });
                }
            },
        };
        let own =
            StdArc::new(OwnedPlacement { home: Home { placement, meter: self.meter.clone() }, entered });
        Ok(ResolvedPlacement { home: &raw const own.home, own: Some(own) })
    }

    /// The dispatchers whose threads run while they have actors.
    pub(crate) fn on_demand(&self) -> impl Iterator<Item = &StdArc<OnDemand>> {
        self.all.iter().filter_map(|(_, dispatch)| match dispatch {
            Dispatch::OnDemand(threads) => Some(threads),
            Dispatch::Lasting { .. } => None,
        })
    }

    /// The dispatchers by their names, each with its kind and the pulses of its threads that run now.
    pub(crate) fn pulses(&self) -> impl Iterator<Item = (&str, DispatcherKind, Vec<StdArc<Pulse>>)> {
        self.all.iter().map(|(name, dispatch)| match dispatch {
            Dispatch::Lasting { running, .. } => (name.as_str(), running.kind(), running.pulses()),
            Dispatch::OnDemand(threads) => (name.as_str(), threads.kind(), threads.pulses()),
        })
    }

    /// Tells all threads to end once there is nothing left to run. Never blocks.
    pub(crate) fn stop(&self) {
        for (_, dispatch) in &self.all {
            match dispatch {
                Dispatch::Lasting { running, .. } => running.stop(),
                Dispatch::OnDemand(threads) => threads.stop(),
            }
        }
    }

    /// Ends all threads and joins them, except the calling thread, if it is one of them.
    pub(crate) fn end(&self) {
        for (_, dispatch) in &self.all {
            match dispatch {
                Dispatch::Lasting { running, .. } => _ = running.stop_and_join(),
                Dispatch::OnDemand(threads) => threads.stop_and_join(),
            }
        }
    }

    /// Returns whether the calling thread is one of the dispatchers' threads.
    pub(crate) fn run_current_thread(&self) -> bool {
        self.all.iter().any(|(_, dispatch)| match dispatch {
            Dispatch::Lasting { running, .. } => running.runs_current_thread(),
            Dispatch::OnDemand(threads) => threads.runs_current_thread(),
        })
    }
}

impl Dispatch {
    fn start(name: String, recipe: Dispatcher, meter: &StdArc<Meter>) -> Result<Self, StartError> {
        if let Some(patience) = recipe.idle_shutdown {
            let threads = OnDemand::start(name, recipe, patience)?;
            return Ok(Self::OnDemand(StdArc::new(threads)));
        }
        let running = recipe.start(&name, crate::util::reclaim::go_online)?;
        let home = match running.kind() {
            DispatcherKind::Pinned => None,
            _ => Some(Box::new(Home { placement: running.place_task()?, meter: meter.clone() })),
        };
        Ok(Self::Lasting { running, home })
    }
}

impl OwnedPlacement {
    /// Releases the placement of an actor that is gone and will not be scheduled again: a thread of its own ends.
    /// Returns the threads that the actor shared.
    pub(crate) fn release(&self) -> Option<&StdArc<OnDemand>> {
        self.home.placement.release();
        self.entered.as_ref()
    }
}
