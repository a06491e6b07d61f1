//! The errors that a server reports, by kind.

use crate::connect_error::ConnectError;

/// An error of a server, `-ERR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// The client may not publish to the subject. The connection stays.
    Publish { subject: String },
    /// The client may not subscribe to the subject. The connection stays.
    Subscribe { subject: String },
    /// A subject was wrong. The connection stays.
    Subject { said: String },
    /// The server closes the connection.
    Fatal(ConnectError),
}

impl ServerFault {
    /// Reads the text behind `-ERR`, without its quotes.
    pub(crate) fn of(text: &str) -> Self {
        let said = || text.to_owned();
        let lower = text.to_ascii_lowercase();
        let begins = |with: &str| lower.starts_with(with);
        if begins("permissions violation for publish") {
            return Self::Publish { subject: quoted(text) };
        }
        if begins("permissions violation for subscription") {
            return Self::Subscribe { subject: quoted(text) };
        }
        if begins("invalid subject") || begins("invalid publish subject") {
            return Self::Subject { said: said() };
        }
        Self::Fatal(if begins("secure connection - tls required") {
            ConnectError::TlsRequired
        } else if lower.contains("authoriz") || lower.contains("authentication") {
            ConnectError::Authorization { said: said() }
        } else if begins("stale connection") {
            ConnectError::Refused {
                said: "Stale Connection: this node has not answered its PINGs".to_owned(),
            }
        } else if begins("slow consumer") {
            ConnectError::SlowConsumer
        } else if begins("server shutdown") {
            ConnectError::ShuttingDown
        } else if begins("maximum")
            && lower.contains("exceeded")
            && (lower.contains("connections") || lower.contains("subscriptions"))
        {
            ConnectError::TooMany { said: said() }
        } else {
            ConnectError::Refused { said: said() }
        })
    }
}

/// The part of a text between its first and last quotation marks.
fn quoted(text: &str) -> String {
    match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) if first < last => text[first + 1..last].to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_a_server_has_its_kind() {
        let fatal = |text: &str| match ServerFault::of(text) {
            ServerFault::Fatal(error) => error,
            other => panic!("{text}: {other:?}"),
        };
        for text in [
            "Authorization Violation",
            "Authorization Timeout",
            "Authentication Timeout",
            "User Authentication Expired",
            "User Authentication Revoked",
            "Account Authentication Expired",
            "Account Authentication Revoked",
            "authentication error - Nkey 'x'",
        ] {
            assert_eq!(fatal(text), ConnectError::Authorization { said: text.to_owned() });
        }
        assert_eq!(fatal("Secure Connection - TLS Required"), ConnectError::TlsRequired);
        assert!(matches!(fatal("Stale Connection"), ConnectError::Refused { .. }));
        assert_eq!(fatal("Slow Consumer"), ConnectError::SlowConsumer);
        assert_eq!(fatal("Server Shutdown"), ConnectError::ShuttingDown);
        for text in [
            "Maximum Connections Exceeded",
            "maximum connections exceeded",
            "Maximum Account Active Connections Exceeded",
            "maximum subscriptions exceeded",
        ] {
            assert_eq!(fatal(text), ConnectError::TooMany { said: text.to_owned() });
        }
        for text in [
            "Unknown Protocol Operation",
            "Attempted To Connect To Route Port",
            "Parser Error",
            "Invalid Client Protocol",
            "Maximum Control Line Exceeded",
            "Maximum Payload Violation",
            "No Responders Requires Headers Support",
            "Message Headers Not Supported",
            "an error that no server has had yet",
            "",
        ] {
            assert_eq!(fatal(text), ConnectError::Refused { said: text.to_owned() });
        }
    }

    #[test]
    fn a_refused_subject_is_told_and_leaves_the_connection() {
        let text = "Permissions Violation for Publish to \"shop.d.n1.n3\"";
        assert_eq!(ServerFault::of(text), ServerFault::Publish { subject: "shop.d.n1.n3".to_owned() });
        let text = "Permissions Violation for Subscription to \"shop.d.n2.*\" using queue \"q\"";
        assert!(
            matches!(ServerFault::of(text), ServerFault::Subscribe { subject } if subject.starts_with("shop.d.n2.*"))
        );
        for text in ["Permissions Violation for Publish to \"", "permissions violation for publish"] {
            assert_eq!(ServerFault::of(text), ServerFault::Publish { subject: text.to_owned() });
        }
        let said = "Invalid Subject".to_owned();
        assert_eq!(ServerFault::of(&said), ServerFault::Subject { said: said.clone() });
    }
}
