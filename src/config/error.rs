//! The errors of configuration files.

use crate::settings::build_error::BuildError;

impl BuildError {
    pub(crate) fn config_syntax(error: &toml::de::Error) -> Self {
        // It shows the line, which may have the address of a server.
        let text = without_passwords(&error.to_string());
        let fault = match error.span() {
            Some(_) => text.trim_end().to_owned(),
            // Only the error of the recursion limit has no place.
            None => format!("tables or arrays are nested too deeply ({})", text.trim_end()),
        };
        BuildError::ConfigSyntax { fault }
    }

    pub(crate) fn config_key(key: impl Into<String>, fault: impl Into<String>) -> Self {
        let (key, mut fault) = (key.into(), fault.into());
        // It shows the value, which may be the address of a server.
        if key == "remote" || key.starts_with("remote.nats") {
            fault = without_passwords(&fault);
        }
        BuildError::ConfigKey { key, fault }
    }
}

/// A text that may have addresses such as `nats://USER:PASSWORD@HOST`: in each line, the text from the first `:` to the last `@`
/// is left out. This may be more than passwords, since a password may have any character.
fn without_passwords(text: &str) -> String {
    let shown = |line: &str| match (line.find(':'), line.rfind('@')) {
        (Some(from), Some(to)) if from < to => format!("{}…{}", &line[..=from], &line[to..]),
        _ => line.to_owned(),
    };
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_without_what_may_be_a_password() {
        for (text, shown) in [
            ("", ""),
            ("a line: 1\nb@c: d", "a line: 1\nb@c: d"),
            ("x\n1 | servers = ['nats://u:pw@h']\ny", "x\n1 | servers = ['nats:…@h']\ny"),
            ("['u:pw@g', 'nats://v:p'w://:x@y@h'", "['u:…@h'"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn errors_of_a_file_show_no_password() {
        for file in [
            "[remote.nats]\nservers = ['nats://u:secret@h', 5",
            "[remote.nats]\nservers = [\n'tls://u:secret@h:1'\n'tls://u:secret@h:1'\n]",
            "[remote]\nnats = 'nats://u:secret@h'",
            "remote = 'nats://u:secret@h'",
        ] {
            let error = crate::System::builder("demo").config(file).map(drop).expect_err(file);
            for text in [error.to_string(), format!("{error:?}")] {
                assert!(!text.contains("secret") && text.contains("…@h"), "{text}");
            }
        }
    }
}
