//! An actor that this node has asked a peer to make.

use crate::core::any_actor_ref::AnyActorRef;
use crate::remote::deploy_message::DeployRequest;
use crate::remote::deployment_state::DeploymentState;
use crate::remote::deployments::Deployed;

/// An actor that this node has asked a peer to make.
pub(crate) struct Deployment {
    pub(crate) request: DeployRequest,
    /// The path of the actor at the peer.
    pub(crate) path: String,
    /// The child here that stands in for the actor.
    pub(crate) stand_in: AnyActorRef,
    pub(crate) state: DeploymentState,
}

impl Deployed for Deployment {
    fn uid(&self) -> u32 {
        self.request.uid
    }

    fn state(&self) -> &DeploymentState {
        &self.state
    }
}
