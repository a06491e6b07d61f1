//! A drawing shows a topology as a graph.

use crate::topology::plan::Topology;
use std::fmt::Write;

impl Topology {
    /// Returns the topology as a graph in Graphviz's language: `dot -Tsvg` draws it. Mounted groups are nodes, and an
    /// entrypoint has a double line. A group of other nodes is a block with depth. An edge is labelled with the type of message, and is dashed if messages take it
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
        let groups = self.locals();
        for group in &groups {
            let double = if group.is_entrypoint { " [peripheries=2]" } else { "" };
            // Writing to a `String` does not fail.
            let _ = writeln!(dot, "  {}{double};", quoted(&group.name));
        }
        for remote in self.remote_entries() {
            let _ = writeln!(dot, "  {} [shape=box3d];", quoted(remote.name()));
        }
        for group in &groups {
            for (routes, dashed) in [(&group.routes, ""), (&group.conditional_routes, ", style=dashed")] {
                for (to, message_type) in routes {
                    let (from, to, label) = (quoted(&group.name), quoted(to), quoted(&short(message_type)));
                    let _ = writeln!(dot, "  {from} -> {to} [label={label}{dashed}];");
                }
            }
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
