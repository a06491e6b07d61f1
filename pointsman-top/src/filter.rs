//! The filter of paths and names that the user types.

/// A part of a path or name, or a pattern of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(String);

impl Filter {
    /// Returns the filter of a text. A text that begins with `/` and has a `*` is a pattern: `*` stands for any
    /// characters of a name, and `**` for any names. Each other text is a part of the path.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text, which is empty if the filter takes all.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The pattern that the server can apply.
    pub fn pattern(&self) -> Option<&str> {
        (self.0.starts_with('/') && self.0.contains('*')).then_some(self.0.as_str())
    }

    /// Whether the filter takes a path or a name.
    pub fn takes(&self, text: &str) -> bool {
        match self.pattern() {
            Some(pattern) => {
                let names =
                    |path| str::split(path, '/').filter(|name: &&str| !name.is_empty()).collect::<Vec<_>>();
                takes_names(&names(pattern), &names(text))
            }
            None => text.contains(&self.0),
        }
    }
}

/// Whether the names of a path match the elements of a pattern.
fn takes_names(pattern: &[&str], names: &[&str]) -> bool {
    // For each number of elements: whether they match the names so far.
    let mut ends = vec![false; pattern.len() + 1];
    ends[0] = true;
    let skip_rests =
        |ends: &mut [bool]| (0..pattern.len()).for_each(|at| ends[at + 1] |= ends[at] && pattern[at] == "**");
    skip_rests(&mut ends);
    for name in names {
        let mut next = vec![false; ends.len()];
        for (at, element) in pattern.iter().enumerate() {
            next[at + 1] =
                if *element == "**" { ends[at + 1] } else { ends[at] && takes_name(element, name) };
        }
        skip_rests(&mut next);
        ends = next;
    }
    ends[pattern.len()]
}

/// Whether a name matches an element, in which `*` stands for any characters.
fn takes_name(element: &str, name: &str) -> bool {
    let mut parts = element.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_part_of_a_path() {
        for (text, path, takes) in [
            ("", "/user/pool", true),
            ("pool", "/user/pool/$1", true),
            ("/user/po", "/user/pool", true),
            ("Pool", "/user/pool", false),
            ("a*", "/user/a*b", true),
        ] {
            assert_eq!(Filter::new(text).takes(path), takes, "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_whole_paths() {
        for (pattern, path, takes) in [
            ("/user/*", "/user/pool", true),
            ("/user/*", "/user/pool/$1", false),
            ("/user/**", "/user/pool/$1", true),
            ("/user/**", "/user", true),
            ("/**/$1", "/user/pool/$1", true),
            ("/user/p*l", "/user/pool", true),
            ("/user/p*o*l", "/user/pool", true),
            ("/user/*x*", "/user/pool", false),
            ("/user/pool*", "/user/pool", true),
            ("/user/*pool", "/user/po", false),
            ("/user/po*ol", "/user/pol", false),
        ] {
            assert_eq!(Filter::new(pattern).takes(path), takes, "{pattern} {path}");
        }
        assert_eq!(Filter::new("/user/*").pattern(), Some("/user/*"));
        assert_eq!((Filter::new("/user").pattern(), Filter::new("a*").pattern()), (None, None));
    }
}
