//! Finds `unsafe` in a file, the items that it is in, and the comment that justifies it.

use core::fmt;
use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// The construct that the keyword introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UseKind {
    Block,
    Function,
    Impl,
    Trait,
    /// `unsafe extern`.
    Foreign,
    Attribute,
}

impl fmt::Display for UseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UseKind::Block => "block",
            UseKind::Function => "fn",
            UseKind::Impl => "impl",
            UseKind::Trait => "trait",
            UseKind::Foreign => "extern",
            UseKind::Attribute => "attribute",
        })
    }
}

/// One use of the keyword.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) kind: UseKind,
    /// The line, counted from 1.
    pub(super) line: usize,
    /// The items it is in, outermost first; a function or an impl is itself the last of them.
    pub(super) item: Vec<String>,
    /// The reason why a block is sound, or the conditions on a function's callers.
    pub(super) reason: Option<String>,
}

impl Use {
    /// Returns whether only tests run it.
    pub(super) fn of_tests(&self) -> bool {
        self.item.iter().any(|item| item == "mod tests")
    }
}

/// A source file.
#[derive(Debug)]
pub(super) struct Source {
    /// Path from the workspace's root.
    pub(super) name: String,
    /// The section "Safety" of its documentation, or else the first paragraph.
    pub(super) invariant: String,
    pub(super) uses: Vec<Use>,
    /// `forbid` or `deny` if the file sets that level of unsafe code, for itself and the modules in
    /// it.
    pub(super) level: Option<&'static str>,
}

impl Source {
    pub(super) fn read(name: &str, text: &str) -> Result<Self, LexError> {
        let lines: Vec<&str> = text.lines().collect();
        let mut uses = Vec::new();
        walk(text.parse()?, &lines, &mut Vec::new(), &mut uses);
        let level = ["forbid", "deny"]
            .into_iter()
            .find(|level| lines.iter().any(|line| line.trim() == format!("#![{level}(unsafe_code)]")));
        Ok(Source { name: name.to_owned(), invariant: invariant(&lines), uses, level })
    }

    /// Returns whether the file is not part of a library or program.
    pub(super) fn of_tests(&self) -> bool {
        let folders = ["tests/", "benches/", "examples/"];
        folders.iter().any(|folder| self.name.starts_with(folder) || self.name.contains(&format!("/{folder}")))
            || self.name.ends_with("/tests.rs")
    }

    /// Returns the uses without a justification. Functions of tests, and those that implement a
    /// trait's, need no separate section.
    pub(super) fn without_reason(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|use_| {
            let declared = use_.item.iter().any(|item| item.starts_with("impl") && item.contains(" for "));
            let exempt = match use_.kind {
                UseKind::Function => declared || self.of_tests() || use_.of_tests(),
                UseKind::Block | UseKind::Impl | UseKind::Trait => false,
                UseKind::Foreign | UseKind::Attribute => false,
            };
            use_.reason.is_none() && !exempt
        })
    }
}

/// Returns the module's invariant.
fn invariant(lines: &[&str]) -> String {
    let docs: Vec<&str> = lines.iter().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let section = docs.iter().position(|line| *line == "# Safety").map(|at| &docs[at + 1..]);
    let paragraph = section.unwrap_or(&docs).iter().skip_while(|line| line.is_empty());
    join(paragraph.take_while(|line| !line.is_empty() && !line.starts_with('#')).copied())
}

fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.collect::<Vec<_>>().join(" ")
}

fn walk(tokens: TokenStream, lines: &[&str], item: &mut Vec<String>, uses: &mut Vec<Use>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut pending: Option<String> = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) => {
                let name = || name_after(&tokens[at + 1..]);
                match word.to_string().as_str() {
                    "unsafe" => {
                        if let Some(kind) = kind(&tokens[at + 1..]) {
                            let line = word.span().start().line;
                            let mut item = item.clone();
                            item.extend(pending.clone());
                            if kind != UseKind::Block {
                                item.extend(label(&tokens[at + 1..], lines));
                            }
                            uses.push(Use { kind, line, item, reason: reason(lines, line, kind) });
                        }
                    }
                    "fn" | "mod" | "trait" | "macro_rules" if pending.is_none() => {
                        pending = name().map(|name| format!("{word} {name}"));
                    }
                    "impl" if pending.is_none() => pending = label(&tokens[at..], lines),
                    _ => {}
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => pending = None,
            TokenTree::Group(group) => {
                let named = (group.delimiter() == Delimiter::Brace).then(|| pending.take()).flatten();
                let depth = item.len();
                item.extend(named);
                walk(group.stream(), lines, item, uses);
                item.truncate(depth);
            }
            _ => {}
        }
    }
}

/// Returns the construct that `unsafe` introduces, by the tokens that follow; `None` for the type
/// of a function pointer.
fn kind(next: &[TokenTree]) -> Option<UseKind> {
    match next.first()? {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(UseKind::Block),
        TokenTree::Group(_) => Some(UseKind::Attribute),
        TokenTree::Ident(word) => match word.to_string().as_str() {
            "fn" => name_after(&next[1..]).map(|_| UseKind::Function),
            "impl" => Some(UseKind::Impl),
            "trait" => Some(UseKind::Trait),
            // `unsafe extern { … }` or `unsafe extern "C" fn name`.
            "extern" => {
                let at = next.iter().position(|token| match token {
                    TokenTree::Ident(word) => word == "fn",
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    _ => false,
                });
                match at.map(|at| next.split_at(at).1) {
                    Some([TokenTree::Ident(_), rest @ ..]) => name_after(rest).map(|_| UseKind::Function),
                    _ => Some(UseKind::Foreign),
                }
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the name after `fn`, `mod`, …; in a macro's body that may be one of its variables.
fn name_after(next: &[TokenTree]) -> Option<String> {
    let mut marks = String::new();
    for token in next {
        match token {
            TokenTree::Punct(mark) if "!$".contains(mark.as_char()) => {
                if mark.as_char() == '$' {
                    marks.push('$');
                }
            }
            TokenTree::Ident(name) => return Some(format!("{marks}{name}")),
            _ => return None,
        }
    }
    None
}

/// Returns the label of an item: `fn name`, or the text from `impl` to its brace.
fn label(tokens: &[TokenTree], lines: &[&str]) -> Option<String> {
    let words = tokens.iter().filter_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    let first = words.clone().next()?;
    match first.as_str() {
        "fn" | "trait" => name_after(&tokens[1..]).map(|name| format!("{first} {name}")),
        "impl" => {
            let start = tokens.first()?.span().start();
            let brace = tokens
                .iter()
                .find(|token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace))?;
            let end = brace.span().start();
            let whole = (start.line..=end.line).map(|line| {
                let text = lines[line - 1];
                let to = if line == end.line { byte(text, end.column) } else { text.len() };
                let from = if line == start.line { byte(text, start.column) } else { 0 };
                text[from..to].trim()
            });
            Some(join(whole).trim().to_owned())
        }
        _ => words.skip_while(|word| word != "fn").nth(1).map(|name| format!("fn {name}")),
    }
}

/// Returns the byte at which a column begins; columns count characters.
fn byte(text: &str, column: usize) -> usize {
    text.char_indices().nth(column).map_or(text.len(), |(at, _)| at)
}

/// Returns the comment above the statement, or above the item: after `SAFETY:`, or the section
/// "Safety" of its documentation.
fn reason(lines: &[&str], line: usize, kind: UseKind) -> Option<String> {
    let above = lines[..line - 1].iter().map(|line| line.trim()).rev();
    let (mark, head) =
        if kind == UseKind::Function || kind == UseKind::Trait { ("///", "# Safety") } else { ("//", "SAFETY:") };
    let mut comment = Vec::new();
    for text in above {
        let continues = !text.is_empty() && !text.ends_with([';', '{', '}']);
        match text.strip_prefix(mark) {
            Some(said) => comment.push(said.trim()),
            None if !comment.is_empty() => break,
            None if text.starts_with("#[") || continues => {}
            None => break,
        }
    }
    comment.reverse();
    let at = comment.iter().rposition(|said| said.starts_with(head))?;
    let first = comment[at][head.len()..].trim();
    let rest = comment[at + 1..].iter().copied().take_while(|said| !said.starts_with("# "));
    let text = join([first].into_iter().chain(rest).filter(|said| !said.is_empty()));
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"//! A file.
//!
//! # Safety
//! All is
//! well.
mod inner {
    impl Thing {
        /// Does.
        ///
        /// # Safety
        /// `p` is good.
        #[inline]
        pub(crate) unsafe fn act(p: *const u8) -> u8 {
            // SAFETY: as promised,
            // by the caller.
            let x =
                unsafe { *p };
            x
        }
    }
    // SAFETY: no state.
    unsafe impl Send for Thing {}
}
macro_rules! many {
    ($name:ident) => {
        fn $name() {
            unsafe { gone() }
        }
    };
}
type Pointer = unsafe fn(u8);
"#;

    #[test]
    fn every_use_is_found_with_its_reason() {
        let source = Source::read("crates/x/src/a.rs", SAMPLE).unwrap();
        assert_eq!(source.invariant, "All is well.");
        let found: Vec<_> = source.uses.iter().map(|u| (u.kind, u.line, u.item.join(" "))).collect();
        assert_eq!(
            found,
            [
                (UseKind::Function, 13, "mod inner impl Thing fn act".to_owned()),
                (UseKind::Block, 17, "mod inner impl Thing fn act".to_owned()),
                (UseKind::Impl, 22, "mod inner impl Send for Thing".to_owned()),
                (UseKind::Block, 27, "macro_rules many fn $name".to_owned()),
            ]
        );
        let reasons: Vec<_> = source.uses.iter().map(|u| u.reason.as_deref()).collect();
        assert_eq!(reasons, [Some("`p` is good."), Some("as promised, by the caller."), Some("no state."), None]);
        assert_eq!(source.without_reason().map(|u| u.line).collect::<Vec<_>>(), [27]);
        assert!(!source.of_tests() && Source::read("tests/a.rs", "").unwrap().of_tests());
    }
}
