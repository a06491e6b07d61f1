//! The setting for a node that another one has declared down.

/// The action of a system that another node has declared down. Between the two nothing passes any more by the UIDs that they had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum OnQuarantine {
    /// The system takes a new UID: all that hung on its links ends, local actors live on, and links begin anew.
    #[default]
    Rejoin,
    /// The system publishes [`NodeEvent::Quarantined`](crate::remote::NodeEvent::Quarantined), and does nothing else.
    Event,
    /// The system begins its [coordinated shutdown](crate::shutdown).
    Stop,
}
