//! Where the server of a system listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a server: a host and a port, or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// `host:port`.
    Tcp(String),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl FromStr for ServerAddress {
    type Err = String;

    /// Reads `127.0.0.1:9464`, `http://127.0.0.1:9464/`, `unix:PATH`, or a path with a slash.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) =
            text.strip_prefix("unix:").or_else(|| text.starts_with(['/', '.']).then_some(text))
        {
            if path.is_empty() {
                return Err("a Unix socket has a path: write unix:/run/shop.socket".to_owned());
            }
            return Ok(ServerAddress::Unix(path.into()));
        }
        let host = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let port = host.rsplit_once(':').filter(|(name, _)| !name.is_empty()).map(|(_, port)| port);
        if port.is_none_or(|port| port.parse::<u16>().is_err()) || host.contains(['/', ' ']) {
            return Err("this is no address: write host:port or unix:PATH".to_owned());
        }
        Ok(ServerAddress::Tcp(host.to_owned()))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Tcp(host) => f.write_str(host),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = |host: &str| Ok(ServerAddress::Tcp(host.to_owned()));
        let unix = |path: &str| Ok(ServerAddress::Unix(path.into()));
        assert_eq!("127.0.0.1:9464".parse(), tcp("127.0.0.1:9464"));
        assert_eq!("http://[::1]:80/".parse(), tcp("[::1]:80"));
        assert_eq!("localhost:1".parse(), tcp("localhost:1"));
        assert_eq!("unix:shop.socket".parse(), unix("shop.socket"));
        assert_eq!("/run/shop".parse(), unix("/run/shop"));
        assert_eq!("./shop".parse(), unix("./shop"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "localhost", ":80", "host:port", "host:70000", "host:1/page", "unix:", "a b:1"] {
            assert!(text.parse::<ServerAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_address_is_shown_as_it_is_read() {
        for text in ["127.0.0.1:9464", "unix:/run/shop"] {
            assert_eq!(text.parse::<ServerAddress>().expect("an address").to_string(), text);
        }
    }
}
