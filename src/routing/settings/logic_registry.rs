//! Logics of the users' own, by the names that sections call them.

use crate::core::build_error::BuildError;
use crate::core::system::SystemBuilder;
use crate::routing::logic::RoutingLogic;
use crate::routing::settings::apply::{FROM_CODE, Kind};
use crate::settings::router::RouterSettings;
use crate::settings::section_fault::SectionFault;
use crate::util::panic::Guarded;
use std::any::{Any, TypeId, type_name};
use std::fmt;

/// Makes a logic for a router of which these settings are said.
type Make<M> = dyn Fn(&RouterSettings) -> Result<Box<dyn RoutingLogic<M>>, String> + Send + Sync;

/// All that a system knows.
#[derive(Default)]
pub struct Logics(Vec<Named>);

struct Named {
    name: String,
    message: TypeId,
    message_name: &'static str,
    /// A `Box<Make<M>>`.
    make: Box<dyn Any + Send + Sync>,
}

impl SystemBuilder {
    /// Gives a logic of your own a name, so that [settings](crate::routing::RouterSettings::router) can ask
    /// for it on routers of messages `M`. The same name may be given once for each type of message.
    ///
    /// `make` gets all that is said of the router, with [options](crate::routing::RouterSettings::option)
    /// that the logic alone understands. It is called when such a router is created, on the thread that
    /// creates it, and says what is wrong with the settings.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::Deployment;
    /// use pointsman::routing::{Pick, RouteContext, RouterSettings, Routees, RoutingLogic};
    ///
    /// /// All to one routee.
    /// struct Favourite(usize);
    /// impl RoutingLogic<u64> for Favourite {
    ///     fn select(&self, _: &u64, routees: &Routees<u64>, _: &RouteContext) -> Pick {
    ///         if self.0 < routees.len() { Pick::One(self.0) } else { Pick::None }
    ///     }
    /// }
    ///
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let says = RouterSettings::new().router("favourite").option("index", 2);
    /// let system = System::builder("demo")
    ///     .routing_logic::<u64, _>("favourite", |says| {
    ///         let index = says.options.get("index").ok_or("it has no option `index`")?;
    ///         Ok(Favourite(index.parse().map_err(|error| format!("index {index:?}: {error}"))?))
    ///     })
    ///     .deploy("/workers", Deployment::new().router(says))
    ///     .build()?;
    /// let workers = system.router("workers").pool(4, |_| Worker).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`build`](Self::build) refuses two logics of one name for the same messages, and a name that the
    /// crate's own kinds of routers have. [`spawn`](crate::routing::RouterPlan::spawn) returns
    /// [`SpawnError::Section`](crate::core::error::SpawnError::Section) for a router of other messages.
    pub fn routing_logic<M, L>(
        mut self,
        name: &str,
        make: impl Fn(&RouterSettings) -> Result<L, String> + Send + Sync + 'static,
    ) -> Self
    where
        M: Send + 'static,
        L: RoutingLogic<M>,
    {
        let make = Guarded::new(make);
        let make: Box<Make<M>> = Box::new(move |says| Ok(Box::new(make(says)?)));
        self.routing_logics.0.push(Named {
            name: name.to_owned(),
            message: TypeId::of::<M>(),
            message_name: type_name::<M>(),
            make: Box::new(make),
        });
        self
    }
}

impl Logics {
    /// Refuses names that lead nowhere, or to two.
    pub fn check(&self) -> Result<(), BuildError> {
        for (place, named) in self.0.iter().enumerate() {
            let is_same = |other: &Named| other.name == named.name && other.message == named.message;
            let fault = if named.name == FROM_CODE || Kind::own(&named.name).is_some() {
                "it is the name of one of the crate's own kinds of routers".to_owned()
            } else if named.name.is_empty() {
                "its name is empty".to_owned()
            } else if self.0[..place].iter().any(is_same) {
                format!("it is given twice for messages {}", named.message_name)
            } else {
                continue;
            };
            return Err(BuildError::RoutingLogic { name: named.name.clone(), fault });
        }
        Ok(())
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|named| named.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        let mut names: Vec<String> = self.0.iter().map(|named| named.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// Makes the logic of this name for messages `M`. Runs user code.
    pub fn make<M: Send + 'static>(
        &self,
        name: &str,
        says: &RouterSettings,
    ) -> Result<Box<dyn RoutingLogic<M>>, SectionFault> {
        let of_name = || self.0.iter().filter(|named| named.name == name);
        let of_type = of_name().find_map(|named| named.make.downcast_ref::<Box<Make<M>>>());
        let Some(make) = of_type else {
            return Err(SectionFault::OtherMessage {
                name: name.to_owned(),
                message: type_name::<M>(),
                known: of_name().map(|named| named.message_name).collect(),
            });
        };
        make(says).map_err(|fault| SectionFault::Refused { name: name.to_owned(), fault })
    }
}

impl fmt::Debug for Logics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
