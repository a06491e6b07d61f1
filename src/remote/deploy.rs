//! The trait of actors that other nodes may make here.

use crate::actor::actor::Actor;
use crate::actor::context::Context;
use crate::failure::Failure;
use crate::remote::wire::Wire;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An actor that can be made on another node, from arguments that are sent there.
///
/// A node makes actors of the factories that it [has](crate::remote::Node::factory) and that its
/// [policy](crate::remote::Policy::allow_factory) allows. The parent that has deployed such an actor supervises it, as if it were
/// here. (Akka's remote deployment, where a factory is a class and its arguments are `Props`.)
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{Deploy, InProcess, Node, Policy};
/// use std::time::Duration;
///
/// /// Counts words that are long enough.
/// struct Counter(usize);
///
/// impl Actor for Counter {
///     type Message = String;
///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
///         println!("{} long words", text.split(' ').filter(|word| word.len() >= self.0).count());
///         Ok(())
///     }
/// }
///
/// impl Deploy for Counter {
///     const FACTORY: &'static str = "demo.Counter";
///     type Args = usize;
///     fn deploy(least: &usize, _: &mut Context<String>) -> Result<Self, Failure> {
///         Ok(Self(*least))
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// let policy = Policy::closed().allow_factory("demo.Counter", ["n1"]);
/// let n2 = Node::new("n2").engine(network.clone()).factory::<Counter>().policy(policy);
/// let n2 = System::builder("demo").node(n2).build()?;
/// let n1 = System::builder("demo").node(Node::new("n1").engine(network)).build()?;
///
/// let counter = n1.actor("counter").deploy_on::<Counter>("n2", 4)?;
/// assert_eq!(counter.path().to_string(), "pointsman://demo@n2/remote/demo@n1/%2Fuser/counter");
/// counter.tell("over the hills and far away".to_owned());
/// counter.poison();
/// counter.when_ended().wait()?;
/// # Ok(())
/// # }
/// ```
pub trait Deploy: Actor<Message: Wire> {
    /// The name of the factory, by which nodes know it: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, of which the first is a
    /// letter or digit.
    const FACTORY: &'static str;

    /// The arguments. References to actors may be among them, reply ports not.
    type Args: Serialize + DeserializeOwned + Send + 'static;

    /// Makes the actor from its arguments: on the node that it is deployed on, when it is created, and again at each restart.
    ///
    /// # Errors
    ///
    /// A failure of initialization, which the parent judges.
    fn deploy(args: &Self::Args, ctx: &mut Context<Self::Message>) -> Result<Self, Failure>;
}
