//! Backoff supervisors of actors on other nodes.

use crate::actor::builder::ActorBuilder;
use crate::core::error::SpawnError;
use crate::pattern::backoff::{Backoff, BackoffSupervisor};
use crate::remote::deploy::Deploy;
use crate::util::panic::Guarded;
use std::sync::Arc;

impl ActorBuilder {
    /// Creates a supervisor of this name here, and its child on another node: as [`spawn_backoff`](Self::spawn_backoff), of a child
    /// that is [deployed](Self::deploy_on). The child is made anew after a delay when it has stopped or failed, as the [`Backoff`]
    /// says; the loss of its node is a stop.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::pattern::Backoff;
    /// use pointsman::remote::{Deploy, InProcess, Node, Policy};
    /// use std::time::Duration;
    ///
    /// struct Printer;
    /// impl Actor for Printer {
    ///     type Message = String;
    ///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
    ///         if text == "jam" { Err(Failure::msg("paper jam")) } else { Ok(()) }
    ///     }
    /// }
    /// impl Deploy for Printer {
    ///     const FACTORY: &'static str = "demo.Printer";
    ///     type Args = ();
    ///     fn deploy(_: &(), _: &mut Context<String>) -> Result<Self, Failure> {
    ///         Ok(Self)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let network = InProcess::new();
    /// let policy = Policy::closed().allow_factory("demo.Printer", ["n1"]);
    /// let n2 = Node::new("n2").engine(network.clone()).factory::<Printer>().policy(policy);
    /// let n2 = System::builder("demo").node(n2).build()?;
    /// let n1 = System::builder("demo").node(Node::new("n1").engine(network)).build()?;
    ///
    /// let backoff = Backoff::on_failure(Duration::from_millis(100), Duration::from_secs(10));
    /// let printer = n1.actor("printer").deploy_backoff::<Printer>("n2", (), backoff)?;
    /// assert!(printer.child().is_some_and(|child| !child.is_here()));
    /// printer.to_ref().tell("jam".to_owned()); // a new printer in 100 ms
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`spawn_backoff`](Self::spawn_backoff), and [`deploy_on`](Self::deploy_on).
    pub fn deploy_backoff<A>(
        self,
        node: &str,
        args: A::Args,
        backoff: Backoff<A::Message>,
    ) -> Result<BackoffSupervisor<A::Message>, SpawnError>
    where
        A: Deploy<Args: Sync>,
    {
        let (node, args) = (node.to_owned(), Arc::new(Guarded::new(args)));
        self.supervise(backoff, move |child: ActorBuilder| child.deploy_shared::<A>(&node, &args))
    }
}
