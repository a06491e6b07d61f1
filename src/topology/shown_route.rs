//! A shown route shows each message to a function before the message goes on: it is there where a group's messages are
//! dumped, and nowhere else.

use crate::core::multi_send::{Copier, SendOp};
#[cfg(not(pointsman_loom))]
use crate::dump::dumper::Dumper;
#[cfg(not(pointsman_loom))]
use crate::dump::record::DumpDirection;
use crate::topology::outlet::{MessageDestination, Route, Routes};
#[cfg(not(pointsman_loom))]
use crate::topology::plan::DeclaredGroup;
use std::any::Any;
use std::sync::Arc as StdArc;

/// Takes the message, the path of the sending group, and the group that the message is offered to.
pub(crate) type Shows<M> = StdArc<dyn Fn(&M, &str, &str) + Send + Sync>;

/// The far end of a route whose messages are shown.
struct ShownDestination<M> {
    behind: Box<dyn MessageDestination<M>>,
    shows: Shows<M>,
    from: StdArc<str>,
    to: StdArc<str>,
}

impl<M> MessageDestination<M> for ShownDestination<M> {
    fn offer(&self, message: M, way: &SendOp<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M> {
        (self.shows)(&message, &self.from, &self.to);
        self.behind.offer(message, way, copier)
    }

    fn restore(&self, message: Box<dyn Any + Send>) -> M {
        self.behind.restore(message)
    }
}

impl<M: 'static> Routes<M> {
    /// Returns these routes with each message shown.
    pub(crate) fn shown(self, from: &str, shows: &Shows<M>) -> Self {
        let from: StdArc<str> = from.into();
        let shown = |Route { to, conditions, always, port }: Route<M>| {
            let (from, to_shown) = (from.clone(), to.clone());
            let port = ShownDestination { behind: port, shows: shows.clone(), from, to: to_shown };
            Route { to, conditions, always, port: Box::new(port) }
        };
        Self { list: self.list.into_iter().map(shown).collect(), clone: self.clone }
    }
}

#[cfg(not(pointsman_loom))]
impl<D: Send + 'static> DeclaredGroup<D> {
    /// Dumps each message of type `M` that members of this group send without naming a recipient: a record for each
    /// group that the message is offered to, with the path of this group. Messages of other types take the way that
    /// they took before. The last call for a type counts.
    ///
    /// ```
    /// use pointsman::dump::Dumper;
    /// use pointsman::prelude::*;
    ///
    /// # #[derive(Debug, Clone)]
    /// # struct Order(u64);
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// # let topology = system.topology();
    /// # let (gateway, ledgers) = (topology.local::<u8>("gateway")?, topology.local::<Order>("ledgers")?);
    /// let dumper = Dumper::builder(&system).to_fn(|record| println!("{record}"))?;
    /// gateway.route_all_to::<Order, _>(&ledgers);
    /// gateway.dump_sent::<Order>(&dumper);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dump_sent<M: std::fmt::Debug + Send + 'static>(&self, dumper: &Dumper) -> &Self {
        let dumper = dumper.clone();
        self.show(StdArc::new(move |message: &M, from: &str, to: &str| {
            dumper.dump(DumpDirection::Out, message, || (from.to_owned(), Some(to.to_owned())));
        }));
        self
    }
}
