//! Keys in messages are written as they would stand in the file.

use serde_path_to_error::{Path, Segment};

/// Returns a part of a key, in quotes where TOML requires them.
pub(crate) fn part(name: &str) -> String {
    let table = toml::Table::from_iter([(name.to_owned(), toml::Value::Integer(0))]);
    let line = table.to_string();
    line.trim_end().strip_suffix(" = 0").unwrap_or(name).to_owned()
}

/// Returns a key with the sections around it.
pub(crate) fn whole(path: &Path) -> String {
    let mut key = String::new();
    for segment in path {
        if !key.is_empty() && !matches!(segment, Segment::Seq { .. }) {
            key.push('.');
        }
        match segment {
            Segment::Map { key: name } => key.push_str(&part(name)),
            other => key.push_str(&other.to_string()),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_part_stands_in_quotes_where_toml_wants_them() {
        assert_eq!(
            [part("threads-min"), part("/a"), part(""), part("a.b")],
            ["threads-min", "\"/a\"", "\"\"", "\"a.b\""]
        );
        for name in ["two\nlines", "a \"b\"", "a = 0", "\u{7f}", "ü"] {
            let text = format!("{} = 1", part(name));
            assert_eq!(
                toml::from_str::<toml::Table>(&text).unwrap().keys().collect::<Vec<_>>(),
                [name],
                "{text}"
            );
        }
    }
}
