//! An address names a system: it is the part of a path before the names.

use crate::path::error::{PathError, PathFault};
use std::fmt;
use std::str::FromStr;

/// The scheme at the beginning of each written address.
pub(crate) const SCHEME: &str = "pointsman";

/// An address names a system in a path: `pointsman://shop`, with host and port `pointsman://shop@10.0.0.7:25520`, or with
/// the name of a node `pointsman://shop@n2`.
///
/// A host is a name, an IPv4 address, or an IPv6 address in brackets. The name of a node has 1 to 64 ASCII letters, digits,
/// `_` and `-`, and begins with a letter or digit.
///
/// ```
/// use pointsman::path::SystemAddress;
///
/// # fn main() -> Result<(), pointsman::path::PathError> {
/// let address = SystemAddress::remote("shop", "10.0.0.7", 25520)?;
/// assert_eq!(address.to_string(), "pointsman://shop@10.0.0.7:25520");
/// assert_eq!("pointsman://shop".parse::<SystemAddress>()?, SystemAddress::local("shop")?);
/// assert_eq!("pointsman://shop@n2".parse::<SystemAddress>()?.node_name(), Some("n2"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemAddress {
    system: Box<str>,
    endpoint: Endpoint,
}

/// Where the system is: the part of an address behind the `@`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Endpoint {
    /// In the process at hand.
    Local,
    /// At a host and port.
    Host(Box<str>, u16),
    /// At a node of this name.
    Node(Box<str>),
}

/// The longest name of a node, in bytes.
const NODE_NAME_MAX: usize = 64;

/// Whether a node can have this name. No name has a colon, which tells it from a host with its port.
pub(crate) fn is_node_name(name: &str) -> bool {
    let allowed =
        |(at, byte): (usize, u8)| byte.is_ascii_alphanumeric() || at > 0 && matches!(byte, b'_' | b'-');
    (1..=NODE_NAME_MAX).contains(&name.len()) && name.bytes().enumerate().all(allowed)
}

impl SystemAddress {
    /// Returns the address of a system in this process.
    ///
    /// # Errors
    ///
    /// [`PathError`] for a name that no system can have, see [`System::builder`](crate::System::builder).
    pub fn local(system: &str) -> Result<Self, PathError> {
        let text = format!("{SCHEME}://{system}");
        let address: Self = text.parse()?;
        match address.endpoint {
            Endpoint::Local => Ok(address),
            // The text behind the name would be taken for a host or a node.
            Endpoint::Host(..) | Endpoint::Node(_) => {
                let position = text.len() - system.len() + address.system.len();
                Err(PathError::new(&text, system, position, PathFault::Character { character: '@' }))
            }
        }
    }

    /// Returns the address of a system that listens on a host and port.
    ///
    /// # Errors
    ///
    /// [`PathError`] for a name that no system can have, or for an empty host.
    pub fn remote(system: &str, host: &str, port: u16) -> Result<Self, PathError> {
        format!("{SCHEME}://{system}@{host}:{port}").parse()
    }

    /// Returns the address of a system at a node, which is known by its name.
    ///
    /// # Errors
    ///
    /// [`PathError`] for a name that no system can have, or that no node can have.
    pub fn node(system: &str, node: &str) -> Result<Self, PathError> {
        let text = format!("{SCHEME}://{system}@{node}");
        let address: Self = text.parse()?;
        match address.node_name() {
            Some(name) if name == node => Ok(address),
            // A part of the text was taken for the system, or the whole for a host and port.
            _ => Err(PathError::new(&text, node, text.len() - node.len(), PathFault::Node)),
        }
    }

    /// Returns the name of the system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the host, if the address has one.
    pub fn host(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Host(host, _) => Some(host),
            Endpoint::Local | Endpoint::Node(_) => None,
        }
    }

    /// Returns the port, if the address has one.
    pub fn port(&self) -> Option<u16> {
        match &self.endpoint {
            Endpoint::Host(_, port) => Some(*port),
            Endpoint::Local | Endpoint::Node(_) => None,
        }
    }

    /// Returns the name of the node, if the address has one.
    pub fn node_name(&self) -> Option<&str> {
        match &self.endpoint {
            Endpoint::Node(name) => Some(name),
            Endpoint::Local | Endpoint::Host(..) => None,
        }
    }

    /// Whether the address has neither a host nor a node, so that its system is in the process at hand.
    pub(crate) fn is_local(&self) -> bool {
        self.endpoint == Endpoint::Local
    }

    /// Splits the address off the front of `text`; returns the address and the position of the rest. `None` if the text
    /// has no scheme.
    pub(crate) fn split(text: &str) -> Result<Option<(Self, usize)>, PathError> {
        let Some((scheme, rest)) = text.split_once("://") else { return Ok(None) };
        // A colon is allowed in names: `/user/a://b` is a path without an address.
        if scheme.contains('/') {
            return Ok(None);
        }
        if scheme != SCHEME {
            return Err(PathError::new(text, scheme, 0, PathFault::Scheme));
        }
        let begin = scheme.len() + "://".len();
        let end = begin + rest.find('/').unwrap_or(rest.len());
        Self::parse_authority(text, begin, &text[begin..end]).map(|address| Some((address, end)))
    }

    /// Parses `system`, `system@host:port` or `system@node`, which stands at `begin` in `text`.
    fn parse_authority(text: &str, begin: usize, authority: &str) -> Result<Self, PathError> {
        let (system, endpoint) = match authority.split_once('@') {
            Some((system, endpoint)) => (system, Some(endpoint)),
            None => (authority, None),
        };
        let fault = |part, position, fault| Err(PathError::new(text, part, position, fault));
        if system.is_empty() {
            return fault(system, begin, PathFault::System);
        }
        for (position, character) in system.char_indices() {
            let sign = position > 0 && matches!(character, '-' | '_');
            if !character.is_ascii_alphanumeric() && !sign {
                return fault(system, begin + position, PathFault::Character { character });
            }
        }
        let Some(endpoint) = endpoint else {
            return Ok(Self { system: system.into(), endpoint: Endpoint::Local });
        };
        let begin = begin + system.len() + 1;
        let Some((host, port)) = endpoint.rsplit_once(':') else {
            if is_node_name(endpoint) {
                return Ok(Self { system: system.into(), endpoint: Endpoint::Node(endpoint.into()) });
            }
            return fault(endpoint, begin, PathFault::Node);
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let allowed = |character: char| match bare {
            Some(_) => character.is_ascii_hexdigit() || matches!(character, ':' | '.' | '%'),
            None => character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_'),
        };
        let name = bare.unwrap_or(host);
        if name.is_empty() {
            return fault(host, begin, PathFault::Host);
        }
        if let Some((position, character)) = name.char_indices().find(|(_, character)| !allowed(*character)) {
            let position = begin + position + usize::from(bare.is_some());
            return fault(host, position, PathFault::Character { character });
        }
        match port.parse() {
            // `parse` would accept a sign too.
            Ok(number) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
                Ok(Self { system: system.into(), endpoint: Endpoint::Host(host.into(), number) })
            }
            _ => fault(port, begin + host.len() + 1, PathFault::Port),
        }
    }
}

impl FromStr for SystemAddress {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        match Self::split(text)? {
            Some((address, end)) if end == text.len() => Ok(address),
            Some((_, end)) => {
                Err(PathError::new(text, &text[end..], end, PathFault::Character { character: '/' }))
            }
            None => Err(PathError::new(text, text, 0, PathFault::Scheme)),
        }
    }
}

impl fmt::Display for SystemAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://{}", self.system)?;
        match &self.endpoint {
            Endpoint::Local => Ok(()),
            Endpoint::Host(host, port) => write!(f, "@{host}:{port}"),
            Endpoint::Node(name) => write!(f, "@{name}"),
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_are_read_and_written() {
        let longest = "n".repeat(64);
        for name in ["n2", "N", "9", "a-b_c-", &longest] {
            let text = format!("pointsman://shop@{name}");
            let address: SystemAddress = text.parse().expect(name);
            assert_eq!((address.system(), address.node_name()), ("shop", Some(name)));
            assert_eq!((address.host(), address.port(), address.is_local()), (None, None, false));
            assert_eq!(address.to_string(), text);
            assert_eq!(SystemAddress::node("shop", name).as_ref(), Ok(&address));
            assert_ne!(Ok(address), SystemAddress::local("shop"));
        }
        let host = SystemAddress::remote("shop", "n2", 1).unwrap();
        assert_eq!((host.node_name(), host.is_local()), (None, false));
        assert!(SystemAddress::local("shop").unwrap().is_local());
    }

    #[test]
    fn names_that_no_node_has_are_refused_with_their_position() {
        for name in ["", "-n", "_n", "n.2", "n 2", "né", "n@2", "n2/user", "n2:1", "[::1]", &"n".repeat(65)]
        {
            let error = SystemAddress::node("shop", name).expect_err(name);
            assert!(error.position >= "pointsman://shop@".len(), "{name}");
        }
        let error = SystemAddress::node("shop", "n.2").unwrap_err();
        assert_eq!((error.element.as_str(), error.position, error.fault), ("n.2", 17, PathFault::Node));
        assert!(error.to_string().contains("give host:port, or the name of a node"), "{error}");
        assert_eq!(SystemAddress::node("sh@op", "n2").unwrap_err().position, 15);
        assert_eq!(SystemAddress::node("", "n2").unwrap_err().fault, PathFault::System);
    }
}
