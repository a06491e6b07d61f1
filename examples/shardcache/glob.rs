//! Redis' glob patterns, as KEYS and CONFIG GET use them.
//!
//! - `*` any run of bytes, also none; `?` any one byte; `\x` the byte `x` itself.
//! - `[abc]` one of these, `[a-c]` a range (either way round), `[^a-c]` none of these. Inside a class
//!   `\` escapes as well. A class that is never closed ends with the pattern.
//! - A `\` that ends the pattern stands for itself.
//!
//! Everything is bytes: no characters, no path separators, case counts.
//!
//! A pattern is compiled once and then matched against many keys. Matching never recurses: when a byte
//! does not fit, only the *last* star seen takes one byte more, because whatever an earlier star could
//! gain by taking more, the last one can gain too. So the worst case is pattern length × text length
//! (`a*a*a*a*b` against a megabyte of `a` included) where a recursive matcher is exponential.
//!
//! Differences from Redis 7.0, both at its odd corners: ranges compare bytes as unsigned numbers (there
//! it depends on the platform's `char`), and patterns made of stars match the empty key too (there `*`
//! alone does, `**` does not).

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Glob(Vec<Token>);

#[derive(Debug, Clone)]
enum Token {
    /// Any run of bytes.
    Star,
    /// Any one byte.
    Any,
    Byte(u8),
    Class(Box<Class>),
}

/// A set of bytes, one bit each.
#[derive(Debug, Clone, Default)]
struct Class([u64; 4]);

impl Glob {
    /// Compiles `pattern`. Every byte string is a pattern.
    pub fn new(pattern: &[u8]) -> Glob {
        let mut tokens = Vec::new();
        let mut rest = pattern;
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'*' if matches!(tokens.last(), Some(Token::Star)) => {}
                b'*' => tokens.push(Token::Star),
                b'?' => tokens.push(Token::Any),
                b'[' => {
                    let (class, after) = Class::parse(rest);
                    tokens.push(Token::Class(Box::new(class)));
                    rest = after;
                }
                b'\\' => {
                    let (literal, after) = rest.split_first().unwrap_or((&b'\\', rest));
                    tokens.push(Token::Byte(*literal));
                    rest = after;
                }
                literal => tokens.push(Token::Byte(literal)),
            }
        }
        Glob(tokens)
    }

    /// Whether all of `text` fits.
    pub fn matches(&self, text: &[u8]) -> bool {
        let tokens = &self.0;
        let (mut token_at, mut text_at) = (0, 0);
        // Where to go on when the last star has to take one byte more: the token behind it, and the
        // first byte that it has not taken.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match tokens.get(token_at) {
                Some(Token::Star) => {
                    token_at += 1;
                    retry = Some((token_at, text_at));
                    continue;
                }
                Some(token) if text.get(text_at).is_some_and(|&byte| token.fits(byte)) => {
                    token_at += 1;
                    text_at += 1;
                    continue;
                }
                None if text_at == text.len() => return true,
                Some(_) if text_at == text.len() => return false,
                _ => {}
            }
            let Some((behind_star, untaken)) = retry else { return false };
            retry = Some((behind_star, untaken + 1));
            (token_at, text_at) = (behind_star, untaken + 1);
        }
    }
}

impl Token {
    fn fits(&self, byte: u8) -> bool {
        match self {
            Token::Star => unreachable!("a star is handled before single bytes are compared"),
            Token::Any => true,
            Token::Byte(literal) => *literal == byte,
            Token::Class(class) => class.contains(byte),
        }
    }
}

impl Class {
    /// Reads a class from behind its `[`; returns it with what follows its `]`.
    fn parse(mut rest: &[u8]) -> (Class, &[u8]) {
        let mut class = Class::default();
        let negated = rest.first() == Some(&b'^');
        if negated {
            rest = &rest[1..];
        }
        loop {
            match rest {
                [] => break,
                [b']', after @ ..] => {
                    rest = after;
                    break;
                }
                [b'\\', literal, after @ ..] => {
                    class.insert(*literal);
                    rest = after;
                }
                [from, b'-', to, after @ ..] => {
                    (*from.min(to)..=*from.max(to)).for_each(|byte| class.insert(byte));
                    rest = after;
                }
                [literal, after @ ..] => {
                    class.insert(*literal);
                    rest = after;
                }
            }
        }
        if negated {
            class.0 = class.0.map(|word| !word);
        }
        (class, rest)
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[track_caller]
    fn check(pattern: &[u8], fits: &[&[u8]], fails: &[&[u8]]) {
        let glob = Glob::new(pattern);
        for text in fits {
            assert!(glob.matches(text), "{} must match {}", pattern.escape_ascii(), text.escape_ascii());
        }
        for text in fails {
            assert!(!glob.matches(text), "{} must not match {}", pattern.escape_ascii(), text.escape_ascii());
        }
    }

    #[test]
    fn literals_stars_and_question_marks() {
        check(b"", &[b""], &[b"a"]);
        check(b"abc", &[b"abc"], &[b"ab", b"abcd", b"ABC", b""]);
        check(b"*", &[b"", b"a", b"\x00\xff\r\n"], &[]);
        check(b"**a**", &[b"a", b"ba", b"ab", b"xaxax"], &[b"", b"b"]);
        check(b"h?llo", &[b"hello", b"h\x00llo"], &[b"hllo", b"heello"]);
        check(b"user:*:n?me", &[b"user:1:name", b"user::a:nome"], &[b"user:1:nme", b"user:name"]);
        check(b"a*b*c", &[b"abc", b"aXbYbZc", b"abbcc"], &[b"acb", b"ab", b"bc"]);
    }

    #[test]
    fn classes() {
        check(b"h[ae]llo", &[b"hello", b"hallo"], &[b"hillo", b"hllo"]);
        check(b"h[^e]llo", &[b"hallo", b"h\xffllo"], &[b"hello"]);
        check(b"[a-c]", &[b"a", b"b", b"c"], &[b"d", b"-", b""]);
        check(b"[c-a]x", &[b"ax", b"bx"], &[b"dx"]);
        // As in Redis: a range up to the bracket, in a class that nothing closes.
        check(b"[a-]", &[b"a", b"]", b"^"], &[b"b", b"-"]);
        check(b"[\\]]", &[b"]"], &[b"\\", b"a"]);
        check(b"[]a]", &[], &[b"]", b"a", b"a]"]);
        check(b"[^]", &[b"a"], &[b"", b"ab"]);
        check(b"[ab", &[b"a", b"b"], &[b"[ab", b"c"]);
        check(b"[", &[], &[b"[", b"", b"a"]);
        check(b"*[0-9]", &[b"key:1", b"9"], &[b"key:", b"1x"]);
    }

    #[test]
    fn escapes() {
        check(b"\\*", &[b"*"], &[b"a", b"\\*"]);
        check(b"a\\?b", &[b"a?b"], &[b"axb"]);
        check(b"\\", &[b"\\"], &[b""]);
        check(b"\\\\", &[b"\\"], &[b"\\\\"]);
        check(b"\\[a]", &[b"[a]"], &[b"a"]);
    }

    /// A recursive matcher would need longer than the universe has.
    #[test]
    fn many_stars_do_not_blow_up() {
        let text = vec![b'a'; 100_000];
        let pattern: Vec<u8> = b"a*".repeat(40).into_iter().chain(*b"b").collect();
        assert!(!Glob::new(&pattern).matches(&text));
        assert!(Glob::new(&pattern[..pattern.len() - 1]).matches(&text));
    }

    /// Against the definition, on all short patterns and texts over a small alphabet.
    #[test]
    fn agrees_with_the_recursive_definition() {
        fn defined(pattern: &[u8], text: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'*', rest)) => (0..=text.len()).any(|taken| defined(rest, &text[taken..])),
                Some((b'?', rest)) => !text.is_empty() && defined(rest, &text[1..]),
                Some((byte, rest)) => text.first() == Some(byte) && defined(rest, &text[1..]),
            }
        }
        fn strings(alphabet: &[u8], len_max: usize) -> Vec<Vec<u8>> {
            let mut all = vec![Vec::new()];
            let mut from = 0;
            for _ in 0..len_max {
                let upto = all.len();
                for at in from..upto {
                    all.extend(
                        alphabet.iter().map(|byte| [&all[at][..], &[*byte]].concat()).collect::<Vec<_>>(),
                    );
                }
                from = upto;
            }
            all
        }
        let texts = strings(b"ab", 6);
        let mut matched = 0;
        for pattern in strings(b"ab*?", 5) {
            let glob = Glob::new(&pattern);
            for text in &texts {
                assert_eq!(glob.matches(text), defined(&pattern, text), "{pattern:?} {text:?}");
                matched += usize::from(glob.matches(text));
            }
        }
        assert!(matched > 1000, "the comparison must not be about failures only");
    }
}
