//! The report of a link.

use crate::remote::refusals::Refusals;
use crate::telemetry::link_stats::{LinkCounts, LinkStats};

/// The account of the link between this start of the system and one start of a peer.
///
/// It counts envelopes: messages, replies, refusals, pills and requests for references. Of those that this node has sent,
/// `shipped = confirmed + lost + in_doubt` at any quiet moment. While the link lives, `in_doubt` is what is under way, or not
/// told of yet; when the link has ended, it is final.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{InProcess, LinkState, Node, Policy};
/// use std::time::Duration;
///
/// struct Printer(std::sync::mpsc::Sender<String>);
/// impl Actor for Printer {
///     type Message = String;
///     fn receive(&mut self, text: String, _: &mut Context<String>) -> HandlerResult {
///         self.0.send(text)?;
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let network = InProcess::new();
/// let n1 = System::builder("shop").node(Node::new("n1").engine(network.clone())).build()?;
/// let policy = Policy::closed().allow_path("/user/printer");
/// let node = Node::new("n2").engine(network).message::<String>().policy(policy);
/// let n2 = System::builder("shop").node(node).build()?;
/// let (sender, printed) = std::sync::mpsc::channel();
/// n2.actor("printer").spawn(move || Printer(sender.clone()))?;
/// let within = Duration::from_secs(10);
/// let printer = n1.resolve::<String>("pointsman://shop@n2/user/printer", within).wait()?;
/// printer.tell("over the hills");
/// assert_eq!(printed.recv()?, "over the hills");
///
/// let remote = n1.remote().expect("a node was described");
/// n1.shutdown(within)?; // waits until n2 has confirmed all
/// let link = &remote.links()[0];
/// assert_eq!((link.node.as_str(), link.state), ("n2", LinkState::Ended));
/// // The request for the reference, and the message.
/// assert_eq!((link.shipped, link.confirmed, link.lost, link.in_doubt), (2, 2, 0, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkReport {
    /// The name of the peer.
    pub node: String,
    /// The UID of the peer's start.
    pub uid: u64,
    /// The state of the link.
    pub state: LinkState,
    /// Envelopes to the peer that wait here.
    pub queued: u64,
    /// Envelopes that the engine has taken.
    pub shipped: u64,
    /// Shipped envelopes that came to the peer, as it has told.
    pub confirmed: u64,
    /// Shipped envelopes that did not come to the peer, as it has told.
    pub lost: u64,
    /// Batches that came to the peer a second time, or too late; it took none of them.
    pub repeated: u64,
    /// Shipped envelopes of which the peer has not told.
    pub in_doubt: u64,
    /// Envelopes of the peer that came here. Each was delivered, or is among the refused.
    pub received: u64,
    /// Large messages of the peer that were given up here before they were whole: a fragment was lost, or none came for ten
    /// seconds. Each is among the lost, or among the refused if its last fragment came. A message in fragments is one envelope.
    pub incomplete: u64,
    /// Actors here that have too many messages, so that the peer is told to send them no more.
    pub choked: u64,
    /// Sends to actors of the peer that were refused here, since the peer has told that these have too many messages. No envelope
    /// is made of such a message.
    pub choked_sends: u64,
    /// Envelopes of the peer that were refused here, by the reason. A message to a selection counts for each refused copy.
    pub refused: Refusals,
    /// Watches and stops of the peer that the policy of this node did not let in, or whose actors were not there.
    pub refused_control: u64,
    /// Replies to the peer that are lost, since too much waited for it or the link had ended.
    pub lost_replies: u64,
    /// Notices of ends that did not wait longer for the messages before them: these have not come within three seconds.
    pub overdue: u64,
    /// Frames of the peer that could not be read.
    pub malformed: u64,
    /// Frames that were addressed to another start of this system, or came from another start of the peer.
    pub stale: u64,
}

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkState {
    /// The peer has not answered the greeting of this node. Messages wait.
    Waiting,
    /// Messages go both ways.
    Up,
    /// Messages go both ways, but the peer is silent.
    Suspect,
    /// The link has ended.
    Ended,
}

impl From<LinkReport> for LinkStats {
    fn from(report: LinkReport) -> Self {
        let state = match report.state {
            LinkState::Waiting => "waiting",
            LinkState::Up => "up",
            LinkState::Suspect => "suspect",
            LinkState::Ended => "ended",
        };
        Self {
            node: report.node,
            uid: report.uid.to_string(),
            state,
            queued: report.queued,
            in_doubt: report.in_doubt,
            choked: report.choked,
            counts: LinkCounts {
                shipped: report.shipped,
                confirmed: report.confirmed,
                lost: report.lost,
                repeated: report.repeated,
                received: report.received,
                refused_control: report.refused_control,
                lost_replies: report.lost_replies,
                overdue: report.overdue,
                incomplete: report.incomplete,
                choked_sends: report.choked_sends,
                malformed: report.malformed,
                stale: report.stale,
            },
            refused: report.refused.iter().collect(),
        }
    }
}
