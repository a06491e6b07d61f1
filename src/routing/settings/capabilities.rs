//! The capcapabilities of a plan's messages, for logics that a section may ask for.

use crate::ask::fork::Answerable;
use crate::routing::logics::broadcast::Broadcast;
use crate::routing::logics::consistent_hashing::ConsistentHashing;
use crate::routing::logics::hash_key::KeySink;
use crate::routing::logics::scatter_gather::ScatterGatherFirstCompleted;
use crate::routing::logics::tail_chopping::TailChopping;
use crate::routing::path_group;
use crate::routing::plan::RouterPlan;
use crate::util::panic::Guarded;

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Tells that the messages can be cloned, so the [system](crate::routing::RouterSettings) may make this a broadcast
    /// router, or a group at paths with wildcards.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::settings::Deployment;
    /// use pointsman::routing::RouterSettings;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let says = Deployment::new().router(RouterSettings::new().router("broadcast-pool"));
    /// let system = System::builder("demo").deploy("/workers", says).build()?;
    /// let workers = system.router("workers").pool(3, |_| Worker).cloneable().spawn()?;
    /// workers.tell(7u64);
    /// assert_eq!(system.ledger().sent, 3);
    ///
    /// let error = system.router("workers").pool(3, |_| Worker).spawn().unwrap_err();
    /// assert!(error.to_string().contains("call `cloneable`"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cloneable(mut self) -> Self
    where
        M: Clone,
    {
        self.capabilities.broadcast = Some(|| Box::new(Broadcast));
        self.capabilities.fan_out = Some(path_group::fan_out);
        self
    }

    /// Tells that the messages can be cloned and answered, so the [system](crate::routing::RouterSettings) may make
    /// this a scatter-gather or tail-chopping router, or a router that [`cloneable`](Self::cloneable) allows.
    pub fn answerable(mut self) -> Self
    where
        M: Clone + Answerable,
    {
        self.capabilities.scatter_gather = Some(|| Box::new(ScatterGatherFirstCompleted::new()));
        self.capabilities.tail_chopping = Some(|| Box::new(TailChopping::new()));
        self.cloneable()
    }

    /// Tells the key of a message, so the [system](crate::routing::RouterSettings) may make this a router by
    /// [`ConsistentHashing`]. Not needed where the code has that logic.
    pub fn keyed(mut self, key: impl Fn(&M, &mut KeySink) + Send + Sync + 'static) -> Self {
        let key = Guarded::new(key);
        let by_key = move |message: &M, sink: &mut KeySink| key(message, sink);
        self.capabilities.hashing = Some(Box::new(|| Box::new(ConsistentHashing::by(by_key))));
        self
    }
}
