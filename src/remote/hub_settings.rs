//! The settings of a hub, as its node was described and checked.

use crate::remote::association::AssociationSettings;
use crate::remote::limits::Limits;
use crate::remote::on_quarantine::OnQuarantine;
use crate::remote::outbox::OutboxLimits;
use crate::remote::policy::Policy;

/// The settings of a hub.
#[derive(Debug, Clone)]
pub(crate) struct HubSettings {
    pub(crate) name: NodeName,
    pub(crate) association: AssociationSettings,
    pub(crate) lanes: u8,
    pub(crate) outbox: OutboxLimits,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) on_quarantine: OnQuarantine,
}

/// The names by which a node is known.
#[derive(Debug, Clone)]
pub(crate) struct NodeName {
    pub(crate) system: String,
    pub(crate) node: String,
    pub(crate) cluster: String,
    pub(crate) roles: Vec<String>,
}
