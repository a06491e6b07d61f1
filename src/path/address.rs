//! An address names a system: it is the part of a path before the names.

use crate::path::error::{PathError, PathFault};
use std::fmt;
use std::str::FromStr;

/// The scheme at the beginning of each written address.
pub(crate) const SCHEME: &str = "pointsman";

/// An address names a system in a path: `pointsman://shop`, or with host and port `pointsman://shop@10.0.0.7:25520`.
///
/// A host is a name, an IPv4 address, or an IPv6 address in brackets.
///
/// ```
/// use pointsman::path::SystemAddress;
///
/// # fn main() -> Result<(), pointsman::path::PathError> {
/// let address = SystemAddress::remote("shop", "10.0.0.7", 25520)?;
/// assert_eq!(address.to_string(), "pointsman://shop@10.0.0.7:25520");
/// assert_eq!("pointsman://shop".parse::<SystemAddress>()?, SystemAddress::local("shop")?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemAddress {
    system: Box<str>,
    endpoint: Option<(Box<str>, u16)>,
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
            None => Ok(address),
            // The text behind the name would be taken for a host.
            Some(_) => {
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

    /// Returns the name of the system.
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Returns the host, if the address has one.
    pub fn host(&self) -> Option<&str> {
        self.endpoint.as_ref().map(|(host, _)| &**host)
    }

    /// Returns the port, if the address has one.
    pub fn port(&self) -> Option<u16> {
        self.endpoint.as_ref().map(|(_, port)| *port)
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

    /// Parses `system` or `system@host:port`, which stands at `begin` in `text`.
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
        let Some(endpoint) = endpoint else { return Ok(Self { system: system.into(), endpoint: None }) };
        let begin = begin + system.len() + 1;
        let Some((host, port)) = endpoint.rsplit_once(':') else {
            return fault(endpoint, begin, PathFault::Port);
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
                Ok(Self { system: system.into(), endpoint: Some((host.into(), number)) })
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
            Some((host, port)) => write!(f, "@{host}:{port}"),
            None => Ok(()),
        }
    }
}
