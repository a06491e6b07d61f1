//! Plans that leave it to the system what kind of router they are.

use super::super::plan::Initial;
use super::super::{RoundRobin, RouterBuilder, RouterPlan};
use crate::actor::{Actor, Context, IntoActor};

impl RouterBuilder {
    /// A router of which the system [says](crate::routing::RouterSettings::router) what kind it is, with a
    /// recipe in case that is a pool. It has one routee unless the system says how many. As Akka's
    /// `FromConfig`.
    ///
    /// ```
    /// # #[cfg(feature = "config")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    /// let system = System::builder("demo")
    ///     .config(
    ///         r#"
    ///         [deployment."/workers".router]
    ///         router = "two-choices-pool"
    ///         nr-of-instances = 8
    ///         "#,
    ///     )?
    ///     .build()?;
    /// let workers = system.router("workers").pool_from_config(|_| Worker).spawn()?;
    /// assert_eq!(workers.routees()?.len(), 8);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "config"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::Section`](crate::SpawnError::Section) where the
    /// system says nothing, or `from-code`.
    pub fn pool_from_config<A, I>(
        self,
        recipe: impl Fn(&mut Context<A::Message>) -> I + Send + Sync + 'static,
    ) -> RouterPlan<A::Message, RoundRobin>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        let mut plan = self.pool(1, recipe);
        plan.is_from_config = true;
        plan
    }

    /// A group of which the system [says](crate::routing::RouterSettings) the kind and the
    /// [paths](crate::routing::RouterSettings::routees_paths). Paths with wildcards need a plan that is
    /// [`cloneable`](RouterPlan::cloneable).
    ///
    /// # Errors
    ///
    /// As for [`pool_from_config`](Self::pool_from_config); and where the system says a pool, or no paths.
    pub fn group_from_config<M: Send + 'static>(self) -> RouterPlan<M, RoundRobin> {
        let mut plan = self.plan(Initial::Paths { paths: Vec::new(), fan_out: None });
        plan.is_from_config = true;
        plan
    }
}
