//! The reasons why there is no connection to a server.

use crate::debug_by_display::debug_by_display;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// There is no connection to a NATS server, for this reason. An engine tries again, at another server if there is one.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host has no address.
    Resolve {
        /// The name of the host.
        host: String,
        /// The reason of the operating system.
        why: String,
    },
    /// The operating system refuses the connection, or has lost it.
    Io {
        /// The reason of the operating system.
        why: String,
    },
    /// The server has not done this within the time.
    TimedOut {
        /// The step that is missing.
        stage: Stage,
        /// The time.
        after: Duration,
    },
    /// The server has closed the connection and has not said why.
    Closed,
    /// The server has not answered any `PING`.
    Silent {
        /// The time since its last byte.
        since: Duration,
    },
    /// The bytes of the server are not those of a NATS server.
    Protocol {
        /// The fault.
        why: String,
    },
    /// The settings demand TLS, and the server does not offer it. Nothing was sent to it.
    TlsNotOffered,
    /// The server demands TLS, and the address says `nats://`.
    TlsRequired,
    /// The server has sent more in plain text than its `INFO`, where TLS had to begin.
    PlainTextBeforeTls,
    /// The plain text would leave this machine: the name of a host that stands for this machine leads to another one.
    PlainText {
        /// The address that the name leads to.
        address: String,
    },
    /// A certificate is not taken.
    Certificate {
        /// Whose it is.
        of: CertificateOwner,
        /// The fault.
        fault: CertificateFault,
    },
    /// Another fault of TLS.
    Tls {
        /// The fault.
        why: String,
    },
    /// The bytes ended without the end that TLS has: what came last may be missing.
    Truncated,
    /// The server does not let this client in.
    Authorization {
        /// The error of the server.
        said: String,
    },
    /// The server does not let this client subscribe.
    Subscription {
        /// The subject.
        subject: String,
    },
    /// The server has too many connections or subscriptions, of all clients or of this one.
    TooMany {
        /// The error of the server.
        said: String,
    },
    /// The server finds this client too slow.
    SlowConsumer,
    /// The server ends.
    ShuttingDown,
    /// The server has closed the connection with another error.
    Refused {
        /// The error of the server.
        said: String,
    },
    /// The server has sent so many `PING`s that the answers do not go out.
    Flood,
}

/// A step on the way to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The address of the host.
    Resolve,
    /// The connection of TCP.
    Connect,
    /// The first line of the server.
    Info,
    /// The handshake of TLS.
    Tls,
    /// The answer to `CONNECT` and `PING`.
    Pong,
}

/// The owner of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateOwner {
    /// The server.
    Server,
    /// This node.
    Client,
}

/// The fault of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateFault {
    /// There is none.
    Absent,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYetValid,
    /// Another authority has signed it.
    Foreign,
    /// It is for other names.
    Misnamed {
        /// The name that it should have.
        host: String,
    },
    /// The peer does not take it, for this reason.
    Refused {
        /// The alert of TLS.
        alert: String,
    },
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Resolve => "the address of the host is not known",
            Stage::Connect => "there is no connection of TCP",
            Stage::Info => "the server has not sent its INFO: is it a NATS server?",
            Stage::Tls => "the handshake of TLS is not done",
            Stage::Pong => "the server has not answered CONNECT and PING",
        })
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Resolve { host, why } => write!(f, "the host `{host}` has no address: {why}"),
            ConnectError::Io { why } => write!(f, "the connection failed: {why}"),
            ConnectError::TimedOut { stage, after } => write!(f, "after {after:?} {stage}"),
            ConnectError::Closed => f.write_str("the server has closed the connection"),
            ConnectError::Silent { since } => {
                write!(f, "the server has sent nothing for {since:?} and answers no PING")
            }
            ConnectError::Protocol { why } => f.write_str(why),
            ConnectError::TlsNotOffered => f.write_str(
                "the settings demand TLS and the server does not offer it: nothing was sent; give the server a \
                 certificate (`tls` in nats-server.conf)",
            ),
            ConnectError::TlsRequired => {
                f.write_str("the server demands TLS: write `tls://` in place of `nats://`, and set `ca`")
            }
            ConnectError::PlainTextBeforeTls => {
                f.write_str("there is more in plain text than the INFO of the server: the connection is not trusted")
            }
            ConnectError::PlainText { address } => write!(
                f,
                "plain text would go to {address}, which is not this machine: write `tls://`, or set `insecure`"
            ),
            ConnectError::Certificate { of, fault } => match (of, fault) {
                (CertificateOwner::Server, CertificateFault::Absent) => {
                    f.write_str("the server has shown no certificate")
                }
                (CertificateOwner::Server, CertificateFault::Expired) => {
                    f.write_str("the certificate of the server has expired: renew it, or look at the clock here")
                }
                (CertificateOwner::Server, CertificateFault::NotYetValid) => {
                    f.write_str("the certificate of the server is not valid yet: look at the clocks")
                }
                (CertificateOwner::Server, CertificateFault::Foreign) => f.write_str(
                    "the certificate of the server is signed by another authority than that of `ca`: \
                     it is another server, or `ca` is the wrong file",
                ),
                (CertificateOwner::Server, CertificateFault::Misnamed { host }) => write!(
                    f,
                    "the certificate of the server is not for `{host}`: use a name that it has, or add this one to it"
                ),
                (CertificateOwner::Server, CertificateFault::Refused { alert }) => {
                    write!(f, "the certificate of the server is not taken: {alert}")
                }
                (CertificateOwner::Client, CertificateFault::Absent) => f.write_str(
                    "the server demands a certificate of this node: set `certificate` and `key`",
                ),
                (CertificateOwner::Client, CertificateFault::Expired) => {
                    f.write_str("the certificate of this node has expired: renew it; it is read again by itself")
                }
                (CertificateOwner::Client, CertificateFault::NotYetValid) => {
                    f.write_str("the certificate of this node is not valid yet: look at the clocks")
                }
                (CertificateOwner::Client, CertificateFault::Foreign) => f.write_str(
                    "the certificate of this node is signed by another authority than the server knows: \
                     have it signed by the authority of the server",
                ),
                (CertificateOwner::Client, CertificateFault::Misnamed { host }) => {
                    write!(f, "the certificate of this node is not for `{host}`")
                }
                (CertificateOwner::Client, CertificateFault::Refused { alert }) => write!(
                    f,
                    "the server does not take the certificate of this node ({alert}), which is right by `ca`: \
                     compare the authorities of both"
                ),
            },
            ConnectError::Tls { why } => write!(f, "TLS failed: {why}"),
            ConnectError::Truncated => {
                f.write_str("the connection has ended without the end of TLS: the server was killed, or it was cut")
            }
            ConnectError::Authorization { said } => write!(
                f,
                "the server does not let this node in: it says '{said}'; add its user, or the name of its certificate, \
                 to the users in nats-server.conf"
            ),
            ConnectError::Subscription { subject } => write!(
                f,
                "the server does not let this node subscribe to `{subject}`: allow it in the permissions of its user"
            ),
            ConnectError::TooMany { said } => {
                write!(f, "the server takes no more: it says '{said}'; raise its limits")
            }
            ConnectError::SlowConsumer => f.write_str(
                "the server finds this node too slow: raise `write_deadline` or `max_pending` in nats-server.conf",
            ),
            ConnectError::ShuttingDown => f.write_str("the server shuts down"),
            ConnectError::Refused { said } => {
                write!(f, "the server has closed the connection: it says '{said}'")
            }
            ConnectError::Flood => {
                f.write_str("the server has sent so many PINGs that the answers do not go out")
            }
        }
    }
}

impl Error for ConnectError {}

debug_by_display! { ConnectError }
