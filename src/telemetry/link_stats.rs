//! The statistics of the links of a node. The feature `remote` makes them; exporters show them.

use crate::core::dead_letter::DeadLetterReason;

/// The accounts of the links of a system with a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeStats {
    /// One for each start of a peer, by name and UID.
    pub links: Vec<LinkStats>,
}

/// The account of the link to one start of a peer, as `LinkReport` describes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkStats {
    /// The name of the peer.
    pub node: String,
    /// The UID of the peer's start, in decimal digits.
    pub uid: String,
    #[cfg_attr(not(feature = "console"), allow(dead_code, reason = "the console alone shows it"))]
    pub state: &'static str,
    pub queued: u64,
    pub in_doubt: u64,
    pub choked: u64,
    pub counts: LinkCounts,
    /// The refused envelopes, without reasons that none has.
    pub refused: Vec<(DeadLetterReason, u64)>,
}

/// The counts of a link that do not fall, but for `shipped` when the engine gives a batch back.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkCounts {
    pub shipped: u64,
    pub confirmed: u64,
    pub lost: u64,
    pub repeated: u64,
    pub received: u64,
    pub refused_control: u64,
    pub lost_replies: u64,
    pub overdue: u64,
    pub incomplete: u64,
    pub choked_sends: u64,
    pub malformed: u64,
    pub stale: u64,
}

impl NodeStats {
    /// Returns what has been counted since `before` was taken. The links that are new since then count from 0.
    pub(crate) fn since(&self, before: &NodeStats) -> NodeStats {
        let mut node = self.clone();
        for link in &mut node.links {
            let same = |known: &&LinkStats| known.node == link.node && known.uid == link.uid;
            let Some(known) = before.links.iter().find(same) else { continue };
            let (counts, before) = (&mut link.counts, &known.counts);
            for (count, before) in [
                (&mut counts.shipped, before.shipped),
                (&mut counts.confirmed, before.confirmed),
                (&mut counts.lost, before.lost),
                (&mut counts.repeated, before.repeated),
                (&mut counts.received, before.received),
                (&mut counts.refused_control, before.refused_control),
                (&mut counts.lost_replies, before.lost_replies),
                (&mut counts.overdue, before.overdue),
                (&mut counts.incomplete, before.incomplete),
                (&mut counts.choked_sends, before.choked_sends),
                (&mut counts.malformed, before.malformed),
                (&mut counts.stale, before.stale),
            ] {
                *count = count.saturating_sub(before);
            }
            for (reason, count) in &mut link.refused {
                let before = known.refused.iter().find(|(known, _)| known == reason);
                *count = count.saturating_sub(before.map_or(0, |(_, count)| *count));
            }
            link.refused.retain(|(_, count)| *count > 0);
        }
        node
    }
}
