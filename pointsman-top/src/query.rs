//! Which actors a server is asked for.

use std::fmt::Write;

/// The actors of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The order in which the server counts off the actors, of which the rest is left out.
    pub order: Order,
    /// A pattern of paths, such as `/user/**`; `None`: all actors.
    pub pattern: Option<String>,
    /// The most actors.
    pub limit: usize,
}

/// An order of actors that a server knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// Each parent before its children.
    #[default]
    Tree,
    /// The actors for which most messages wait go first.
    Queued,
    /// The actors that have handled most messages go first.
    Handled,
    /// The actors that have handled most messages since the request before go first.
    Rate,
}

impl Query {
    /// The target of the request, with its parameters.
    pub fn target(&self) -> String {
        let order = match self.order {
            Order::Tree => "tree",
            Order::Queued => "queued",
            Order::Handled => "handled",
            Order::Rate => "rate",
        };
        let mut target = format!("/snapshot?limit={}&order={order}", self.limit);
        if let Some(pattern) = &self.pattern {
            target.push_str("&path=");
            for byte in pattern.bytes() {
                if byte.is_ascii_alphanumeric() || b"/*-._~".contains(&byte) {
                    target.push(char::from(byte));
                } else {
                    // A string takes all.
                    let _ = write!(target, "%{byte:02X}");
                }
            }
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_written_so_that_no_target_ends_early() {
        let pattern = Some("/user/ä b&limit=9#?".to_owned());
        let query = Query { order: Order::Queued, pattern, limit: 5 };
        assert_eq!(query.target(), "/snapshot?limit=5&order=queued&path=/user/%C3%A4%20b%26limit%3D9%23%3F");
        let all = Query { order: Order::default(), pattern: None, limit: 500 };
        assert_eq!(all.target(), "/snapshot?limit=500&order=tree");
    }
}
