//! A drawing shows a topology as a graph.

use crate::topology::plan::Topology;
use std::fmt::Write;

/// A route edge stands for the routes of a single type of message from a group to another, as [`Topology::connections`]
/// shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteEdge {
    /// The sender's group.
    pub from: String,
    /// The group that gets the messages.
    pub to: String,
    /// The name of the type of message.
    pub message_type: &'static str,
    /// Whether messages take the edge only if a condition holds.
    pub is_conditional: bool,
}

impl Topology {
    /// Returns the topology as a graph in Graphviz's language: `dot -Tsvg` draws it. Mounted groups are nodes, and an
    /// entrypoint has a double line. An edge is labelled with the type of message, and is dashed if messages take it
    /// only if a condition holds.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// # let topology = system.topology();
    /// let gateway = topology.local::<u64>("gateway")?;
    /// let audit = topology.local::<u64>("audit")?;
    /// gateway.route_to::<u64, u64>(&audit, |amount| *amount > 10_000);
    /// # let sink = ActorRef::from_fn(|_: u64| {});
    /// # gateway.mount(&sink);
    /// # audit.mount(&sink);
    /// assert_eq!(
    ///     topology.to_dot(),
    ///     "digraph topology {\n  \
    ///        node [shape=box];\n  \
    ///        \"gateway\";\n  \
    ///        \"audit\";\n  \
    ///        \"gateway\" -> \"audit\" [label=\"u64\", style=dashed];\n\
    ///      }\n"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph topology {\n  node [shape=box];\n");
        for group in self.locals() {
            let double = if group.is_entrypoint { " [peripheries=2]" } else { "" };
            // Writing to a `String` does not fail.
            let _ = writeln!(dot, "  {}{double};", quoted(&group.name));
        }
        for edge in self.connections() {
            let dashed = if edge.is_conditional { ", style=dashed" } else { "" };
            let (from, to) = (quoted(&edge.from), quoted(&edge.to));
            let label = quoted(&short(edge.message_type));
            let _ = writeln!(dot, "  {from} -> {to} [label={label}{dashed}];");
        }
        dot.push_str("}\n");
        dot
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the name of a type without the paths in it.
fn short(name: &str) -> String {
    let mut short = String::new();
    for part in name.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::short;

    #[test]
    fn names_of_types_lose_their_paths() {
        let name = "pointsman::actor_ref::reply::Call<shop::gateway::Get<alloc::string::String, (u8, a::B)>>";
        assert_eq!(short(name), "Call<Get<String, (u8, B)>>");
    }
}
