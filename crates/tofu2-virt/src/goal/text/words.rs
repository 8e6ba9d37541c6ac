//! The words of a line of text.

use super::super::Reason;

/// The words of a line, without comments.
#[derive(Debug)]
pub(super) struct Words<'a> {
    line: &'a [u8],
    at: usize,
    /// Whether the current position is inside a comment, which may span lines.
    pub(super) in_comment: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A keyword or a label.
    Name(&'a str),
    Number(u64),
    /// `-1`.
    Any,
    Sign(char),
    End,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a [u8], in_comment: bool) -> Self {
        Words { line, at: 0, in_comment }
    }

    /// Returns the next word.
    ///
    /// # Errors
    /// A number that has more than 64 bits.
    pub(super) fn next(&mut self) -> Result<Word<'a>, Reason> {
        self.skip();
        let Some(&first) = self.line.get(self.at) else { return Ok(Word::End) };
        match first {
            b'0'..=b'9' => {
                let digits = self.take(|byte| byte.is_ascii_digit());
                digits
                    .parse()
                    .map(Word::Number)
                    .map_err(|_| Reason::Expected { expected: "a number of 64 bits", found: digits.to_owned() })
            }
            b'a'..=b'z' | b'A'..=b'Z' => Ok(Word::Name(self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))),
            b'-' if self.line.get(self.at + 1) == Some(&b'1') => {
                self.at += 2;
                Ok(Word::Any)
            }
            other => {
                self.at += 1;
                Ok(Word::Sign(char::from(other)))
            }
        }
    }

    /// Takes a number.
    ///
    /// # Errors
    /// If the next word is another.
    pub(super) fn number(&mut self, expected: &'static str) -> Result<u64, Reason> {
        match self.next()? {
            Word::Number(number) => Ok(number),
            other => Err(other.instead_of(expected)),
        }
    }

    /// Takes a keyword.
    ///
    /// # Errors
    /// If the next word is another.
    pub(super) fn keyword(&mut self, expected: &'static str) -> Result<(), Reason> {
        match self.next()? {
            Word::Name(name) if name == expected => Ok(()),
            other => Err(other.instead_of(expected)),
        }
    }

    /// Takes a sign.
    ///
    /// # Errors
    /// If the next word is another.
    pub(super) fn sign(&mut self, sign: char, expected: &'static str) -> Result<(), Reason> {
        match self.next()? {
            Word::Sign(found) if found == sign => Ok(()),
            other => Err(other.instead_of(expected)),
        }
    }

    /// Checks that the line ends here.
    ///
    /// # Errors
    /// If it doesn't.
    pub(super) fn end(&mut self) -> Result<(), Reason> {
        match self.next()? {
            Word::End => Ok(()),
            other => Err(other.instead_of("the end of the line")),
        }
    }

    /// Skips blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = &self.line[self.at..];
            if self.in_comment {
                let Some(end) = rest.windows(2).position(|pair| pair == b"*/") else {
                    self.at = self.line.len();
                    return;
                };
                self.at += end + 2;
                self.in_comment = false;
            } else if rest.first().is_some_and(u8::is_ascii_whitespace) {
                self.at += 1;
            } else if rest.starts_with(b"//") {
                self.at = self.line.len();
            } else if rest.starts_with(b"/*") {
                self.at += 2;
                self.in_comment = true;
            } else {
                return;
            }
        }
    }

    /// Takes bytes, all of them ASCII.
    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.line[self.at..];
        let length = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        self.at += length;
        core::str::from_utf8(&rest[..length]).unwrap_or_default()
    }
}

impl Word<'_> {
    /// Returns the error of a word that is not the expected one.
    pub(super) fn instead_of(self, expected: &'static str) -> Reason {
        let found = match self {
            Word::Name(name) => format!("`{name}`"),
            Word::Number(number) => format!("`{number}`"),
            Word::Any => "`-1`".to_owned(),
            Word::Sign(sign) => format!("`{}`", sign.escape_debug()),
            Word::End => "the end of the line".to_owned(),
        };
        Reason::Expected { expected, found }
    }
}
