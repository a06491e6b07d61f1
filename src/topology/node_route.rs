//! A node route is the answer of a route's predicate: it names the nodes of a remote group that get a message.

/// A node route names the nodes of a [remote group](crate::topology::RemoteGroup) that get a message: it is the answer of
/// a predicate at [`route_to_nodes`](crate::topology::DeclaredGroup::route_to_nodes). The group's own router, at each of these
/// nodes, chooses the actors.
///
/// | outcome | a node that mounts the group | another node |
/// |---|---|---|
/// | [`Unicast`](Self::Unicast) | gets the message | closed |
/// | [`Multicast`](Self::Multicast) | gets a copy | closed, that copy alone |
/// | [`Broadcast`](Self::Broadcast) | gets a copy | – |
/// | [`Discard`](Self::Discard), [`Default`](Self::Default) | discarded | discarded |
///
/// *Closed* and *discarded* mean the same as at a [`KeyRoute`](crate::group::KeyRoute). A node that is named twice gets one
/// copy. The outcomes are elfo's.
///
/// ```
/// use pointsman::topology::NodeRoute;
///
/// struct Order {
///     account: usize,
///     is_close: bool,
/// }
///
/// fn node_of<'a>(order: &'a Order, nodes: &'a [String]) -> NodeRoute<'a> {
///     match order.is_close {
///         true => NodeRoute::Broadcast,
///         false => NodeRoute::Unicast(&nodes[order.account % nodes.len()]),
///     }
/// }
///
/// let nodes = ["n2".to_owned(), "n3".to_owned()];
/// assert_eq!(node_of(&Order { account: 7, is_close: false }, &nodes), NodeRoute::Unicast("n3"));
/// assert_eq!(node_of(&Order { account: 7, is_close: true }, &nodes), NodeRoute::Broadcast);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRoute<'a> {
    /// The message goes to the node of this name.
    Unicast(&'a str),
    /// The message goes to the nodes of these names.
    Multicast(Vec<&'a str>),
    /// The message goes to all nodes that mount the group.
    Broadcast,
    /// The message goes to no node.
    Discard,
    /// The predicate has no opinion: the message is handled as by [`Discard`](Self::Discard), unless [`or`](Self::or) gives
    /// another outcome.
    Default,
}

impl NodeRoute<'_> {
    /// Returns this outcome, or `other` in the place of [`Default`](Self::Default).
    ///
    /// ```
    /// use pointsman::topology::NodeRoute;
    ///
    /// assert_eq!(NodeRoute::Default.or(NodeRoute::Broadcast), NodeRoute::Broadcast);
    /// assert_eq!(NodeRoute::Discard.or(NodeRoute::Broadcast), NodeRoute::Discard);
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Default => other,
            said => said,
        }
    }
}
