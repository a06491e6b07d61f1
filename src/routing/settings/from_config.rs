//! Plans that leave the kind of router to the system.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::actor::recipe::IntoActor;
use crate::routing::builder::RouterBuilder;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::plan::{Initial, RouterPlan};

impl RouterBuilder {
    /// Describes a router whose kind the [system](crate::routing::RouterSettings::router) decides, with a recipe in
    /// case that is a pool. It has one routee unless the system says how many. As Akka's `FromConfig`.
    ///
    /// ```
    /// # #[cfg(feature = "config")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
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
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::Section`](crate::SpawnError::Section) where the system has no
    /// section for the router, or a section that says `from-code`.
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

    /// Describes a group whose kind and [paths](crate::routing::RouterSettings::routees_paths) the
    /// [system](crate::routing::RouterSettings) decides. Paths with wildcards need a plan that is
    /// [`cloneable`](RouterPlan::cloneable). No paths are needed where the system names a [logic of your
    /// own](crate::SystemBuilder::routing_logic) that [makes its routees
    /// itself](crate::routing::RoutingLogic::own_routees), as Akka's custom group does:
    ///
    /// ```
    /// # #[cfg(feature = "config")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{RouteContext, Routees, RoutingLogic};
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    ///
    /// /// One routee for the even numbers, and one for the odd.
    /// struct ByParity;
    /// impl RoutingLogic<u64> for ByParity {
    ///     fn select(&self, number: &u64, routees: &Routees<u64>, _: &RouteContext) -> Option<usize> {
    ///         if routees.len() == 2 { Some(*number as usize % 2) } else { None }
    ///     }
    ///     fn own_routees(&self, system: &SystemRef) -> Result<Option<Vec<ActorRef<u64>>>, String> {
    ///         let made = ["even", "odd"].map(|name| system.actor(name).spawn(|| Worker));
    ///         let made: Result<Vec<_>, _> = made.into_iter().collect();
    ///         Ok(Some(made.map_err(|error| error.to_string())?))
    ///     }
    /// }
    ///
    /// let system = System::builder("demo")
    ///     .routing_logic::<u64, _>("by-parity", |_| Ok(ByParity))
    ///     .config("[deployment.\"/numbers\".router]\nrouter = 'by-parity'")?
    ///     .build()?;
    /// let numbers: Router<u64> = system.router("numbers").group_from_config().spawn()?;
    /// assert_eq!(numbers.routees()?.len(), 2);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "config"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`pool_from_config`](Self::pool_from_config); and where the system says a pool, or no paths and no such
    /// logic.
    pub fn group_from_config<M: Send + 'static>(self) -> RouterPlan<M, RoundRobin> {
        let mut plan = self.plan(Initial::Paths { paths: Vec::new(), fan_out: None });
        plan.is_from_config = true;
        plan
    }
}
