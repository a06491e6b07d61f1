//! The request to actors of another node for their references, from a selection. Each actor answers itself, behind the messages
//! that were sent to it before.

use crate::ask::error::Outcome;
use crate::ask::reply::{AnsweredBy, ReplyDestination, ReplyTo};
use crate::core::any_actor_ref::AnyActorRef;
use crate::path::canonical_path::check_canonical;
use crate::remote::hub::Hub;
use crate::remote::resolving::{ANY_TYPE, FoundActor, Identity, identify};
use crate::selection::identify::IdentityReceiver;
use std::sync::Arc;

/// Takes the answer of the other node.
struct Answers {
    hub: Arc<Hub>,
    node: String,
    to: Arc<dyn IdentityReceiver>,
}

/// Asks the actors that a text selects at a node. `is_one`: the first answer is enough.
pub(crate) fn identify_at(
    hub: &Arc<Hub>,
    node: &str,
    text: &str,
    is_one: bool,
    to: &Arc<dyn IdentityReceiver>,
) {
    let answers = Answers { hub: hub.clone(), node: node.to_owned(), to: to.clone() };
    identify(hub.link_to(node).as_ref(), text, ANY_TYPE, &is_one, ReplyTo::to_own_sink(answers));
}

impl Answers {
    fn reference(&self, system: u64, found: &FoundActor) -> Option<AnyActorRef> {
        let FoundActor { path, uid, type_id } = found;
        check_canonical(path, *uid > 0).ok()?;
        let known = self.hub.registry.by_id(*type_id).ok()?;
        known.far(&self.hub.link(&self.node, system)?, path, *uid)
    }
}

impl ReplyDestination<Identity> for Answers {
    fn take(&self, outcome: Outcome<Identity>, _: AnsweredBy<'_>) -> Result<(), Outcome<Identity>> {
        match outcome {
            Ok(Identity::Actors { system, found }) if !found.is_empty() => {
                for found in &found {
                    self.to.take(found.as_ref().and_then(|found| self.reference(system, found)));
                }
            }
            _ => self.to.take(None),
        }
        Ok(())
    }

    fn wanted(&self) -> bool {
        self.to.is_wanted()
    }
}
