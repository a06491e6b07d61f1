//! The policy of a node: what may come in, from which peers.
//!
//! | what comes in | closed | strict paths | open |
//! |---|---|---|---|
//! | answer to a port, notice about an actor that this node has asked about | yes | yes | yes |
//! | message or watch, by a reference (its uid is known) | yes | listed paths | yes |
//! | the same for an actor below `/system` or `/temp` | listed paths, exports | listed paths, exports | yes |
//! | request for a reference, message by a path without wildcards | listed paths | listed paths | yes |
//! | the same with wildcards | no | no | yes |
//! | poison pill, kill, stop, leave | of those that the peer has deployed | as closed | yes |
//! | resume, restart, suspend | of those that the peer has deployed | as closed | as closed |
//! | deployment | listed factories | listed factories | listed factories |

use crate::path::address::is_node_name;
use crate::path::canonical_path::{check_canonical_selection, parse_canonical};
use crate::path::error::{PathError, PathFault};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The prefix of a rule's peers that are named by a role.
const ROLE: &str = "role:";

/// The longest name of a role, in bytes.
pub(crate) const ROLE_MAX: usize = 64;

/// Whether a node can have this role.
pub(crate) fn is_role(name: &str) -> bool {
    let allowed = |(at, byte): (usize, u8)| byte.is_ascii_alphanumeric() || at > 0 && b"._:-".contains(&byte);
    (1..=ROLE_MAX).contains(&name.len()) && name.bytes().enumerate().all(allowed)
}

/// A policy cannot be kept, since a part of it is no path or no peer.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A listed path is no pattern of paths.
    Path(PathError),
    /// A rule, or a factory, is for peers that cannot be.
    Peers {
        /// The text that was given for the peers.
        peers: String,
    },
    /// A rule has rules of its own.
    NestedRule {
        /// The peers of the outer rule.
        peers: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Path(error) => {
                write!(f, "no pattern of paths for the policy of a node: {error}")
            }
            PolicyError::Peers { peers } => write!(
                f,
                "{peers:?} names no peers for the policy of a node: give the name of a node, 1 to 64 ASCII letters, digits, \
                 '_' and '-', or \"role:\" and a role, 1 to 64 ASCII letters, digits, '.', '_', ':' and '-'"
            ),
            PolicyError::NestedRule { peers } => write!(
                f,
                "the rule for {peers:?} has rules of its own: give them to the policy of the node, before this rule"
            ),
        }
    }
}

impl std::error::Error for PolicyError {}

debug_by_display! { PolicyError }

/// The peers that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(try_from = "String", into = "String"))]
enum Peers {
    Node(String),
    Role(String),
}

impl Peers {
    fn parse(text: &str) -> Result<Self, PolicyError> {
        match text.strip_prefix(ROLE) {
            Some(role) if is_role(role) => Ok(Peers::Role(role.to_owned())),
            None if is_node_name(text) => Ok(Peers::Node(text.to_owned())),
            _ => Err(PolicyError::Peers { peers: text.to_owned() }),
        }
    }

    fn has(&self, node: &str, roles: &[String]) -> bool {
        match self {
            Peers::Node(name) => name == node,
            Peers::Role(role) => roles.contains(role),
        }
    }
}

/// A pattern of paths: `*` is any single name, `prefix*` a single name with that prefix, and `**` at the end one or more names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(try_from = "String", into = "String"))]
struct Pattern(String);

impl Pattern {
    fn parse(text: &str) -> Result<Self, PolicyError> {
        let fault = |element: &str, position, fault| PathError::new(text, element, position, fault);
        let path = parse_canonical(text).map_err(PolicyError::Path)?;
        if path.address().is_some() {
            return Err(PolicyError::Path(fault(text, 0, PathFault::Elsewhere)));
        }
        if let Some(at) = text.find('#') {
            let character = PathFault::Character { character: '#' };
            return Err(PolicyError::Path(fault(&text[at..], at, character)));
        }
        let mut position = 1;
        let mut rest = text[1..].split('/').peekable();
        while let Some(element) = rest.next() {
            let star = element.find('*').map(|at| (at, &element[at..]));
            let is_allowed = match star {
                None | Some((_, "*")) => true,
                Some((0, "**")) => rest.peek().is_none(),
                _ => false,
            };
            if let (false, Some((at, _))) = (is_allowed, star) {
                let fault = fault(element, position + at, PathFault::Character { character: '*' });
                return Err(PolicyError::Path(fault));
            }
            position += element.len() + 1;
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether it has this path. Wildcards at the top do not reach below `/system` and `/temp`.
    fn has(&self, path: &str) -> bool {
        let mut names = path.split('/').skip(1);
        let mut first = true;
        let mut elements = self.0.split('/').skip(1);
        loop {
            let (element, name) = (elements.next(), names.next().map(without_uid));
            let (element, name) = match (element, name) {
                (None, None) => return true,
                (Some(element), Some(name)) => (element, name),
                _ => return false,
            };
            let is_private = std::mem::replace(&mut first, false) && matches!(name, "system" | "temp");
            let has_name = match element.strip_suffix('*') {
                Some(_) if is_private => false,
                // `**` stands at the end.
                Some("*") => return true,
                Some(prefix) => name.starts_with(prefix),
                None => element == name,
            };
            if !has_name {
                return false;
            }
        }
    }
}

/// The base of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Closed,
    StrictPaths,
    Open,
}

/// A policy says what may come in from other nodes. By default it is [closed](Self::closed).
///
/// A reference is a name and no secret: a peer that has got a reference may send to it, and may guess others, unless the
/// policy has [strict paths](Self::strict_paths). A refusal is counted by its reason, logged at most once a second, and told
/// to those that ask.
///
/// ```
/// use pointsman::remote::Policy;
///
/// let policy = Policy::closed()
///     .allow_path("/user/orders")
///     .allow_path("/user/public/*")
///     .rule("role:operator", Policy::open())
///     .rule("n7", Policy::closed().strict_paths().allow_path("/user/orders"));
/// assert!(policy.check().is_ok());
/// let error = Policy::closed().allow_path("orders").check().unwrap_err();
/// assert!(error.to_string().contains("begin it with '/'"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "config", serde(try_from = "file::PolicySection", into = "file::PolicySection"))]
#[must_use = "a policy has no effect before a node has it"]
pub struct Policy {
    own: Access,
    /// The first that is for a peer holds for it.
    rules: Vec<(Peers, Access)>,
    /// The first error in building it.
    error: Option<PolicyError>,
}

/// The accesses that one peer has: what may come in from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    base: Base,
    paths: Vec<Pattern>,
    /// The factories that may be deployed, with their peers; without peers, by all.
    factories: Vec<(String, Vec<Peers>)>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::closed()
    }
}

impl Policy {
    fn of(base: Base) -> Self {
        let own = Access { base, paths: Vec::new(), factories: Vec::new() };
        Self { own, rules: Vec::new(), error: None }
    }

    /// Lets in messages and watches that use a reference which this node has handed out, and answers. Requests for
    /// references and messages by path come in for [listed](Self::allow_path) paths alone. A peer cannot stop or kill actors
    /// but those that it has deployed here, cannot use wildcards, and reaches nothing below `/system` and `/temp` but what was
    /// exported.
    pub fn closed() -> Self {
        Self::of(Base::Closed)
    }

    /// Lets in all that a local holder of a reference may do: messages, watches, stops, pills, and selections with wildcards.
    /// Deployments do not come in.
    pub fn open() -> Self {
        Self::of(Base::Open)
    }

    /// Lets in messages and watches for [listed](Self::allow_path) paths and exports alone, even by a reference. On an open policy
    /// it has no effect.
    pub fn strict_paths(mut self) -> Self {
        if self.own.base == Base::Closed {
            self.own.base = Base::StrictPaths;
        }
        self
    }

    /// Lists a path, or a pattern of paths: `*` is any single name, `prefix*` a single name with that prefix, and `**` at the
    /// end one or more names. A wildcard in the place of the first name does not stand for `system` or `temp`.
    pub fn allow_path(mut self, pattern: &str) -> Self {
        match Pattern::parse(pattern) {
            Ok(pattern) => self.own.paths.push(pattern),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Lets these peers deploy actors of a factory here: names of nodes, or `role:` and a role. Without peers, all may.
    pub fn allow_factory<'a>(mut self, factory: &str, peers: impl IntoIterator<Item = &'a str>) -> Self {
        match peers.into_iter().map(Peers::parse).collect() {
            Ok(peers) => self.own.factories.push((factory.to_owned(), peers)),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Makes another policy hold for some peers: the name of a node, or `role:` and a role. The first rule that has a peer holds
    /// for it, and if none has, this policy itself.
    ///
    /// The engine vouches for the name of a peer: over NATS the permissions of the server do. A peer says its own roles,
    /// and nothing vouches for them, so a rule for a role holds for any member of the cluster that claims the role. A rule
    /// that allows more than the policy around it is best given to names.
    pub fn rule(mut self, peers: &str, policy: Policy) -> Self {
        let checked = match (Peers::parse(peers), policy.error) {
            (Ok(_), None) if !policy.rules.is_empty() => {
                Err(PolicyError::NestedRule { peers: peers.to_owned() })
            }
            (Ok(_), Some(error)) => Err(error),
            (parsed, _) => parsed,
        };
        match checked {
            Ok(peers) => self.rules.push((peers, policy.own)),
            Err(error) => self.fail(error),
        }
        self
    }

    fn fail(&mut self, error: PolicyError) {
        self.error.get_or_insert(error);
    }

    /// Checks the texts of the policy.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] tells the first that is no pattern of paths, or names no peers.
    pub fn check(&self) -> Result<(), PolicyError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Returns what may come in from this peer.
    pub(crate) fn access(&self, node: &str, roles: &[String]) -> &Access {
        let rule = self.rules.iter().find(|(peers, _)| peers.has(node, roles));
        rule.map_or(&self.own, |(_, access)| access)
    }
}

/// An actor that a peer names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) path: &'a str,
    /// It was exported, or its reference was handed out although it is temporary.
    pub(crate) is_export: bool,
    /// The peer has deployed it here.
    pub(crate) is_deployed: bool,
}

/// The kinds of what can come in from a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Incoming<'a> {
    /// A message by a reference.
    Message(Target<'a>),
    /// A watch by a reference, or its end.
    Watch(Target<'a>),
    /// A message to a selection.
    Select { text: &'a str },
    /// A request for the references of a selection.
    Identify { text: &'a str },
    /// A poison pill, a kill, a stop, or a leave.
    End(Target<'a>),
    /// A resume, a restart or a suspension.
    Verdict(Target<'a>),
    /// A deployment.
    Deploy { factory: &'a str, node: &'a str, roles: &'a [String] },
    /// A reply, a refusal or an identity, which has the token of a port of ours.
    Answer,
    /// The end, the failure or the deployment of an actor of the peer, which this node has watched or deployed.
    Notice,
}

/// The reason why something may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAllowed {
    /// The path is not listed.
    Path,
    /// The actor is below `/system` or `/temp`.
    Private,
    Wildcard,
    End,
    Verdict,
    Factory,
}

impl NotAllowed {
    /// The number of these reasons.
    pub(crate) const COUNT: usize = Self::Factory as usize + 1;
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotAllowed::Path => "the path is not listed: `Policy::allow_path` lists it",
            NotAllowed::Private => "actors below /system and /temp are not for peers, unless they are exported",
            NotAllowed::Wildcard => "wildcards of peers need an open policy: `Policy::open`, by a rule for the peer",
            NotAllowed::End => {
                "a peer may end those that it has deployed alone: `Policy::open`, by a rule for the peer, allows more"
            }
            NotAllowed::Verdict => "a peer may resume, restart and suspend those that it has deployed alone",
            NotAllowed::Factory => "the peer may not deploy this factory: `Policy::allow_factory` allows it",
        })
    }
}

impl Access {
    /// Decides whether this may come in.
    pub(crate) fn decide(&self, incoming: Incoming<'_>) -> Result<(), NotAllowed> {
        let or = |is_allowed: bool, why: NotAllowed| if is_allowed { Ok(()) } else { Err(why) };
        match incoming {
            Incoming::Answer | Incoming::Notice => Ok(()),
            Incoming::Message(target) | Incoming::Watch(target) => match self.base {
                Base::Open => Ok(()),
                _ if target.is_export || target.is_deployed => Ok(()),
                _ if is_private(target.path) => or(self.lists(target.path), NotAllowed::Private),
                Base::Closed => Ok(()),
                Base::StrictPaths => or(self.lists(target.path), NotAllowed::Path),
            },
            // `..` and empty names would lead past the list.
            Incoming::Select { text } | Incoming::Identify { text } => match self.base {
                _ if check_canonical_selection(text).is_err() => Err(NotAllowed::Path),
                Base::Open => Ok(()),
                _ if has_wildcard(text) => Err(NotAllowed::Wildcard),
                _ if is_private(text) => or(self.lists(text), NotAllowed::Private),
                _ => or(self.lists(text), NotAllowed::Path),
            },
            Incoming::End(target) => or(target.is_deployed || self.base == Base::Open, NotAllowed::End),
            Incoming::Verdict(target) => or(target.is_deployed, NotAllowed::Verdict),
            Incoming::Deploy { factory, node, roles } => {
                let may =
                    |peers: &Vec<Peers>| peers.is_empty() || peers.iter().any(|peers| peers.has(node, roles));
                let is_listed = self.factories.iter().any(|(name, peers)| name == factory && may(peers));
                or(is_listed, NotAllowed::Factory)
            }
        }
    }

    fn lists(&self, path: &str) -> bool {
        self.paths.iter().any(|pattern| pattern.has(path))
    }
}

/// Whether the actor is the engine's own, or temporary.
fn is_private(path: &str) -> bool {
    path.split('/').nth(1).is_some_and(|first| matches!(without_uid(first), "system" | "temp"))
}

/// Whether a selection may mean several actors: with a uid behind it a name means itself.
fn has_wildcard(text: &str) -> bool {
    text.split('/').any(|element| !element.contains('#') && element.contains(['*', '?']))
}

/// The name of an element of a selection.
fn without_uid(element: &str) -> &str {
    element.split_once('#').map_or(element, |(name, _)| name)
}

/// The keys of a policy in a file.
#[cfg(feature = "config")]
mod file {
    use super::{Access, Base, Pattern, Peers, Policy, PolicyError, ROLE};
    use crate::util::values::is_default;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
    pub(super) struct PolicySection {
        default: BaseKey,
        #[serde(skip_serializing_if = "is_default")]
        strict_paths: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        paths: Vec<Pattern>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        deploy: BTreeMap<String, Vec<Peers>>,
        /// In their order: the first that has a peer holds for it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rule: Vec<RuleSection>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct RuleSection {
        peers: Peers,
        #[serde(default)]
        default: BaseKey,
        #[serde(default, skip_serializing_if = "is_default")]
        strict_paths: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<Pattern>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        deploy: BTreeMap<String, Vec<Peers>>,
    }

    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum BaseKey {
        #[default]
        Closed,
        Open,
    }

    /// The base of these keys.
    fn base(default: BaseKey, strict_paths: bool) -> Result<Base, String> {
        match (default, strict_paths) {
            (BaseKey::Closed, false) => Ok(Base::Closed),
            (BaseKey::Closed, true) => Ok(Base::StrictPaths),
            (BaseKey::Open, false) => Ok(Base::Open),
            (BaseKey::Open, true) => {
                Err("strict-paths = true has no effect with default = \"open\": leave one of both out"
                    .to_owned())
            }
        }
    }

    /// The keys of a base.
    fn keys(base: Base) -> (BaseKey, bool) {
        let default = if base == Base::Open { BaseKey::Open } else { BaseKey::Closed };
        (default, base == Base::StrictPaths)
    }

    impl TryFrom<PolicySection> for Policy {
        type Error = String;

        fn try_from(section: PolicySection) -> Result<Self, String> {
            let PolicySection { default, strict_paths, paths, deploy, rule } = section;
            let own =
                Access { base: base(default, strict_paths)?, paths, factories: deploy.into_iter().collect() };
            let rules = rule.into_iter().map(|section| {
                let RuleSection { peers, default, strict_paths, paths, deploy } = section;
                let base = base(default, strict_paths)?;
                Ok((peers, Access { base, paths, factories: deploy.into_iter().collect() }))
            });
            Ok(Self { own, rules: rules.collect::<Result<_, String>>()?, error: None })
        }
    }

    impl From<Policy> for PolicySection {
        fn from(policy: Policy) -> Self {
            let Access { base, paths, factories } = policy.own;
            let (default, strict_paths) = keys(base);
            let rule = policy.rules.into_iter().map(|(peers, Access { base, paths, factories })| {
                let (default, strict_paths) = keys(base);
                RuleSection { peers, default, strict_paths, paths, deploy: deploy(factories) }
            });
            Self { default, strict_paths, paths, deploy: deploy(factories), rule: rule.collect() }
        }
    }

    /// The factories by their names. A factory that is listed again has the peers of both.
    fn deploy(factories: Vec<(String, Vec<Peers>)>) -> BTreeMap<String, Vec<Peers>> {
        let mut by_name: BTreeMap<String, Vec<Peers>> = BTreeMap::new();
        for (name, peers) in factories {
            match by_name.get_mut(&name) {
                // Without peers, all may.
                Some(known) if known.is_empty() || peers.is_empty() => known.clear(),
                Some(known) => known.extend(peers),
                None => _ = by_name.insert(name, peers),
            }
        }
        by_name
    }

    impl TryFrom<String> for Pattern {
        type Error = PolicyError;

        fn try_from(text: String) -> Result<Self, PolicyError> {
            Self::parse(&text)
        }
    }

    impl From<Pattern> for String {
        fn from(pattern: Pattern) -> Self {
            pattern.0
        }
    }

    impl TryFrom<String> for Peers {
        type Error = PolicyError;

        fn try_from(text: String) -> Result<Self, PolicyError> {
            Self::parse(&text)
        }
    }

    impl From<Peers> for String {
        fn from(peers: Peers) -> Self {
            match peers {
                Peers::Node(name) => name,
                Peers::Role(role) => format!("{ROLE}{role}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target<'_> {
        Target { path, is_export: false, is_deployed: false }
    }

    /// D19: each kind, from each source, to each sort of target, under each base.
    #[test]
    fn each_base_lets_in_what_its_table_says() {
        use NotAllowed::{End, Factory, Path, Private, Verdict, Wildcard};
        let listed = |policy: Policy| {
            policy.allow_path("/user/listed").allow_path("/user/some/*").allow_path("/system/shown")
        };
        let policies =
            [listed(Policy::closed()), listed(Policy::closed().strict_paths()), listed(Policy::open())];
        let exported = |path| Target { is_export: true, ..target(path) };
        let deployed = |path| Target { is_deployed: true, ..target(path) };
        let yes = [None; 3];
        let by_reference = [
            (target("/user/a"), [None, Some(Path), None]),
            (target("/user/$a"), [None, Some(Path), None]),
            (target("/deadLetters"), [None, Some(Path), None]),
            (target("/remote/shop@n2/user/a"), [None, Some(Path), None]),
            (target("/systems/a"), [None, Some(Path), None]),
            (target("/user/listed"), yes),
            (target("/user/some/$b"), yes),
            (target("/user/some/a/b"), [None, Some(Path), None]),
            (target("/user/some"), [None, Some(Path), None]),
            (target("/system/remoting"), [Some(Private), Some(Private), None]),
            (target("/system"), [Some(Private), Some(Private), None]),
            (target("/temp/$a"), [Some(Private), Some(Private), None]),
            (target("/system/shown"), yes),
            (exported("/temp/$a"), yes),
            (deployed("/remote/shop@n2/user/a"), yes),
        ];
        let by_path = [
            ("/user/a", [Some(Path), Some(Path), None]),
            ("/user/a#7", [Some(Path), Some(Path), None]),
            ("/user/listed", yes),
            ("/user/listed#7", yes),
            ("/user/some/a", yes),
            ("/user/some/*", [Some(Wildcard), Some(Wildcard), None]),
            ("/user/liste?", [Some(Wildcard), Some(Wildcard), None]),
            // A name with a sign, not a wildcard.
            ("/user/some/*#7", yes),
            ("/system/remoting", [Some(Private), Some(Private), None]),
            ("/system#1/remoting", [Some(Private), Some(Private), None]),
            ("/temp/$a#7", [Some(Private), Some(Private), None]),
            ("/system/shown", yes),
            ("/user/some/../a", [Some(Path); 3]),
            ("/user//listed", [Some(Path); 3]),
            ("user/listed", [Some(Path); 3]),
        ];
        let only_deployed = [
            (target("/user/a"), [Some(End), Some(End), None]),
            (target("/user/listed"), [Some(End), Some(End), None]),
            (target("/system/remoting"), [Some(End), Some(End), None]),
            (exported("/temp/$a"), [Some(End), Some(End), None]),
            (deployed("/remote/shop@n2/user/a"), yes),
        ];
        let mut table: Vec<(Incoming<'_>, [Option<NotAllowed>; 3])> =
            vec![(Incoming::Answer, yes), (Incoming::Notice, yes)];
        for (target, expected) in by_reference {
            table.push((Incoming::Message(target), expected));
            table.push((Incoming::Watch(target), expected));
        }
        for (text, expected) in by_path {
            table.push((Incoming::Select { text }, expected));
            table.push((Incoming::Identify { text }, expected));
        }
        for (target, expected) in only_deployed {
            table.push((Incoming::End(target), expected));
            let verdict = if target.is_deployed { None } else { Some(Verdict) };
            table.push((Incoming::Verdict(target), [verdict; 3]));
        }
        table.push((Incoming::Deploy { factory: "demo.Worker", node: "n2", roles: &[] }, [Some(Factory); 3]));
        for (incoming, expected) in table {
            for (policy, expected) in policies.iter().zip(expected) {
                assert_eq!(policy.check(), Ok(()));
                let decided = policy.access("n2", &[]).decide(incoming);
                assert_eq!(decided.err(), expected, "{incoming:?} {:?}", policy.own.base);
            }
        }
    }

    #[test]
    fn the_first_rule_that_has_the_peer_holds_for_it() {
        let policy = Policy::closed()
            .allow_path("/user/a")
            .rule("n1", Policy::open())
            .rule("role:region:eu", Policy::closed().allow_path("/user/b"))
            .rule("n2", Policy::open());
        assert_eq!(policy.check(), Ok(()));
        let eu = ["backend".to_owned(), "region:eu".to_owned()];
        let may = |node: &str, roles: &[String], text: &str| {
            policy.access(node, roles).decide(Incoming::Select { text }).is_ok()
        };
        for (node, roles, a, b, wildcard) in [
            ("n1", &eu[..], true, true, true),
            ("n2", &eu[..], false, true, false),
            ("n2", &eu[..1], true, true, true),
            ("n3", &eu[..1], true, false, false),
            ("n3", &eu[..], false, true, false),
        ] {
            let found =
                (may(node, roles, "/user/a"), may(node, roles, "/user/b"), may(node, roles, "/user/*"));
            assert_eq!(found, (a, b, wildcard), "{node} {roles:?}");
        }
    }

    #[test]
    fn factories_are_for_the_peers_that_are_named() {
        let policy = Policy::open()
            .allow_factory("demo.Worker", ["n1", "role:frontend"])
            .allow_factory("demo.Any", []);
        let frontend = ["frontend".to_owned()];
        for (factory, node, roles, expected) in [
            ("demo.Worker", "n1", &[][..], Ok(())),
            ("demo.Worker", "n2", &[], Err(NotAllowed::Factory)),
            ("demo.Worker", "n2", &frontend, Ok(())),
            ("demo.Any", "n2", &[], Ok(())),
            ("demo.any", "n1", &[], Err(NotAllowed::Factory)),
        ] {
            let decided = policy.access(node, roles).decide(Incoming::Deploy { factory, node, roles });
            assert_eq!(decided, expected, "{factory} {node}");
        }
    }

    #[test]
    fn patterns_have_the_paths_that_they_say() {
        let pattern = |text: &str| Pattern::parse(text).expect(text);
        for (text, path, expected) in [
            ("/user/a", "/user/a", true),
            ("/user/a", "/user/ab", false),
            ("/user/a*", "/user/ab", true),
            ("/user/a*", "/user/a", true),
            ("/user/a*", "/user/ba", false),
            ("/user/a*", "/user/a/b", false),
            ("/user/*/c", "/user/b/c", true),
            ("/user/*/c", "/user/c", false),
            ("/user/**", "/user/b/c", true),
            ("/user/**", "/user", false),
            ("/**", "/user/a", true),
            ("/**", "/system/a", false),
            ("/*/a", "/temp/a", false),
            ("/s*/a", "/system/a", false),
            ("/system/**", "/system/a/b", true),
            ("/temp/*", "/temp/$a", true),
        ] {
            assert_eq!(pattern(text).has(path), expected, "{text} {path}");
        }
    }

    #[test]
    fn wrong_texts_are_refused_with_what_is_wrong() {
        let path = |text: &str| match Policy::closed().allow_path(text).check() {
            Err(PolicyError::Path(error)) => (error.position, error.fault),
            other => panic!("{text}: {other:?}"),
        };
        let star = PathFault::Character { character: '*' };
        let long = format!("/{}", "a".repeat(1024));
        for (text, expected) in [
            ("", (0, PathFault::Relative)),
            ("user", (0, PathFault::Relative)),
            ("/", (0, PathFault::Relative)),
            ("/user/**/a", (6, star)),
            ("/user/a**", (7, star)),
            ("/user/a*b", (7, star)),
            ("/user/***", (6, star)),
            ("/user/../a", (6, PathFault::NotCanonical)),
            ("/user/a?", (7, PathFault::Character { character: '?' })),
            ("/user/$a", (6, PathFault::GeneratedName)),
            ("/user/a#7", (7, PathFault::Character { character: '#' })),
            ("pointsman://shop@n2/user/a", (0, PathFault::Elsewhere)),
            (&long, (0, PathFault::TooLong { max: 1024 })),
        ] {
            assert_eq!(path(text), expected, "{text}");
        }
        for peers in ["", "n.1", "role:", "role:-a", "role:a b", &format!("role:{}", "a".repeat(65))] {
            let error = PolicyError::Peers { peers: peers.to_owned() };
            assert_eq!(Policy::closed().rule(peers, Policy::open()).check(), Err(error.clone()));
            assert_eq!(Policy::closed().allow_factory("f", [peers]).check(), Err(error));
        }
        let longest = format!("role:{}", "a".repeat(64));
        assert_eq!(Policy::closed().rule(&longest, Policy::open()).check(), Ok(()));
        let inner = Policy::closed().rule("n1", Policy::open());
        let error = Policy::closed().rule("n2", inner).check().unwrap_err();
        assert_eq!(error, PolicyError::NestedRule { peers: "n2".into() });
        // The error of a rule's policy, and the first of several.
        let policy = Policy::closed().rule("n1", Policy::closed().allow_path("a")).allow_path("b");
        assert!(matches!(policy.check(), Err(PolicyError::Path(error)) if error.path == "a"));
    }
}
