//! Logics of the users' own, by their names in sections.

use crate::core::extensions::Extension;
use crate::routing::logic::RoutingLogic;
use crate::routing::settings::apply::{FROM_CODE, Kind};
use crate::settings::build_error::BuildError;
use crate::settings::router::RouterSettings;
use crate::settings::section_fault::SectionFault;
use crate::util::panic::Guarded;
use std::any::{Any, TypeId, type_name};
use std::fmt;

/// Makes a logic for a router with these settings.
type Make<M> = dyn Fn(&RouterSettings) -> Result<Box<dyn RoutingLogic<M>>, String> + Send + Sync;

/// All logics that a system knows by name.
#[derive(Default)]
pub(crate) struct LogicRegistry(Vec<Named>);

struct Named {
    name: String,
    message: TypeId,
    message_name: &'static str,
    /// A `Box<Make<M>>`.
    make: Box<dyn Any + Send + Sync>,
}

impl Extension for LogicRegistry {}

impl LogicRegistry {
    /// Adds a logic of the user's own for messages `M`.
    pub(crate) fn add<M, L>(
        &mut self,
        name: &str,
        make: impl Fn(&RouterSettings) -> Result<L, String> + Send + Sync + 'static,
    ) where
        M: Send + 'static,
        L: RoutingLogic<M>,
    {
        let make = Guarded::new(make);
        let make: Box<Make<M>> = Box::new(move |says| Ok(Box::new(make(says)?)));
        self.0.push(Named {
            name: name.to_owned(),
            message: TypeId::of::<M>(),
            message_name: type_name::<M>(),
            make: Box::new(make),
        });
    }
}

impl LogicRegistry {
    /// Refuses names that lead nowhere, or to two logics.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
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

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|named| named.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let mut names: Vec<String> = self.0.iter().map(|named| named.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// Makes the logic of this name for messages `M`. Runs user code.
    pub(crate) fn make<M: Send + 'static>(
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

impl fmt::Debug for LogicRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
