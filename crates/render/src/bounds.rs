//! How far a template may go. A template is a list of places to fill in: it needs no variables of its own, and without
//! them nothing in it can grow beyond what it is given. Whoever doubles a string forty times, or chains ten thousand
//! operators, would otherwise end the whole program: Rust has no way back from memory or a stack that is used up.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

/// Words and signs between two braces; the longest of the built-in ones has 12.
const PARTS: usize = 100;

/// Blocks `{% … %}` of one template; the built-in ones have 17 at the most.
const BLOCKS: usize = 500;

/// Bytes of what is rendered: ten times what 64 partitions take.
pub(super) const OUTPUT: usize = 1 << 20;

/// How a block may begin. `set` and its like bind what could grow.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Filters that give no more than they are given.
const FILTERS: [&str; 13] = [
    "abs", "default", "first", "int", "last", "length", "lower", "reverse", "round", "safe", "sort", "trim",
    "upper",
];

/// Whether a template keeps within its bounds: else its line, and what is wrong there.
pub(super) fn check(text: &str, syntax: SyntaxConfig) -> Result<(), (u32, String)> {
    let mut blocks = 0;
    let mut block = Block::default();
    let mut before = None;
    // The renderer reports what is no token at all.
    for (token, span) in tokenize(text, false, syntax).map_while(Result::ok) {
        let wrong = |text: String| Err((u32::from(span.start_line), text));
        match &token {
            Token::TemplateData(_) => {}
            Token::VariableStart => block = Block::default(),
            Token::BlockStart => {
                blocks += 1;
                if blocks > BLOCKS {
                    return wrong(format!("it has more than {BLOCKS} blocks"));
                }
                block = Block { is_statement: true, ..Block::default() };
            }
            token => {
                block.parts += 1;
                if let Err(text) = block.take(token, before.as_ref()) {
                    return wrong(text);
                }
            }
        }
        before = Some(token);
    }
    Ok(())
}

/// What was read between two braces until now.
#[derive(Default)]
struct Block {
    is_statement: bool,
    is_loop: bool,
    parts: usize,
    /// What follows is what a loop goes through, and binds.
    binds: bool,
}

impl Block {
    fn take(&mut self, token: &Token<'_>, before: Option<&Token<'_>>) -> Result<(), String> {
        if self.parts > PARTS {
            return Err(format!("more than {PARTS} words and signs stand between two braces"));
        }
        match token {
            Token::Ident(word) if self.is_statement && self.parts == 1 && !STATEMENTS.contains(word) => {
                Err(format!("templates know no {word}, only {}", STATEMENTS.join(", ")))
            }
            Token::Ident(word) if matches!(before, Some(Token::Pipe)) && !FILTERS.contains(word) => {
                Err(format!("templates know no filter {word}, only {}", FILTERS.join(", ")))
            }
            Token::Ident("recursive") if self.binds => Err("a loop is not recursive in templates".to_owned()),
            Token::Ident("for") if self.is_statement && self.parts == 1 => {
                self.is_loop = true;
                Ok(())
            }
            Token::Ident("in") if self.is_loop => {
                self.binds = true;
                Ok(())
            }
            Token::Mul | Token::Pow => Err("nothing is multiplied in templates".to_owned()),
            Token::Tilde | Token::Plus | Token::Comma | Token::BracketOpen | Token::BraceOpen
                if self.binds =>
            {
                Err("a loop goes through what is there: nothing is put together for it".to_owned())
            }
            _ => Ok(()),
        }
    }
}
