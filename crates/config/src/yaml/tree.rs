//! A YAML text as a tree.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::{Fault, Key, Node, Value};

/// More levels than any key of a configuration has.
const DEPTH: usize = 16;

/// Reads a text of one document.
///
/// # Errors
/// The first line that is no YAML, is there twice, or begins another document.
pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser::new_from_str(text);
    // What ends a line in YAML 1.1 (section 5.4).
    let breaks = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    let last_line = (text.matches(breaks).count() + usize::from(!text.ends_with(breaks))).max(1);
    let mut tree = Tree { last_line, ..Tree::default() };
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| tree.broken(text, &error))?;
        tree.take(event, span)?;
    }
    Ok(tree.whole.unwrap_or_default())
}

#[derive(Default)]
struct Tree {
    /// Lists and sections that have not ended, the outermost first.
    open: Vec<Open>,
    whole: Option<Node>,
    documents: usize,
    /// The number of the text's last line.
    last_line: usize,
}

struct Open {
    node: Node,
    /// Where it begins, in characters.
    index: usize,
    /// The key whose value comes next.
    key: Option<Key>,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let line = self.line_of(span);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem =
                        "a second document begins here, and a file has one: remove the line with --- or ...";
                    return Err(Fault::at(line, problem));
                }
            }
            Event::Scalar(text, style, _, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                self.put(Node { line, value: Value::Scalar { text: text.into_owned(), plain } })?;
            }
            Event::SequenceStart(..) => self.begin(Value::List(Vec::new()), span)?,
            Event::MappingStart(..) => self.begin(Value::Map(Vec::new()), span)?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { node, .. }) = self.open.pop() {
                    self.put(node)?;
                }
            }
            // Aliases multiply a short text without bound, and no key needs one.
            Event::Alias(_) => {
                return Err(Fault::at(line, "an alias (*NAME) stands here: write the value itself"));
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => {}
        }
        Ok(())
    }

    /// The line on which a part begins. The parser puts an empty part at the end of a text on the line behind it.
    fn line_of(&self, span: Span) -> usize {
        span.start.line().min(self.last_line)
    }

    fn begin(&mut self, value: Value, span: Span) -> Result<(), Fault> {
        let (line, index) = (self.line_of(span), span.start.index());
        if self.open.len() == DEPTH {
            let problem = format!("this is nested deeper than {DEPTH} levels, and no key needs that");
            return Err(Fault::at(line, problem));
        }
        self.open.push(Open { node: Node { line, value }, index, key: None });
        Ok(())
    }

    fn put(&mut self, node: Node) -> Result<(), Fault> {
        let sections = self.open.iter().rev().filter_map(|open| open.key.as_ref());
        let sections: Vec<String> = sections.map(|key| key.text.clone()).collect();
        let Some(open) = self.open.last_mut() else {
            self.whole = Some(node);
            return Ok(());
        };
        match (&mut open.node.value, open.key.take()) {
            (Value::Map(entries), Some(key)) => entries.push((key, node)),
            (Value::Map(entries), None) => {
                let Value::Scalar { text, .. } = node.value else {
                    return Err(Fault::at(
                        node.line,
                        "a list or a section is no key: a key is a word before a colon",
                    ));
                };
                if let Some((first, _)) = entries.iter().find(|(key, _)| key.text == text) {
                    let twice = Fault::twice(node.line, text, first.line);
                    return Err(sections.iter().fold(twice, |fault, section| fault.of_key(section, 0)));
                }
                open.key = Some(Key { line: node.line, text });
            }
            (Value::List(items), _) => items.push(node),
            (Value::Scalar { .. }, _) => {}
        }
        Ok(())
    }

    /// What a person looks for where a text is no YAML: the parser names where it gave up, which can be many lines
    /// after the cause.
    fn broken(&self, text: &str, error: &ScanError) -> Fault {
        let at = error.marker();
        let is_tabbed =
            |line: &str| line.trim_start_matches(' ').starts_with('\t') && !line.trim().is_empty();
        let tabbed = (1..).zip(text.lines()).take(at.line() + 1).find(|(_, line)| is_tabbed(line));
        if let Some((line, _)) = tabbed {
            return Fault::at(line, "a tab indents this line, where YAML takes blanks only: write blanks");
        }
        let char_at = |index| text.chars().nth(index);
        if let Some(quote @ ('"' | '\'')) = char_at(at.index())
            && !text.chars().skip(at.index() + 1).any(|c| c == quote)
        {
            return Fault::at(at.line(), format!("the quote {quote} opens here, and no line closes it"));
        }
        let open = self.open.iter().rev().find_map(|open| Some((open, char_at(open.index)?)));
        if let Some((open, bracket @ ('[' | '{'))) = open {
            let closing = if bracket == '[' { ']' } else { '}' };
            let count = |wanted| text.chars().skip(open.index).filter(|c| *c == wanted).count();
            if count(bracket) > count(closing) {
                return Fault::at(
                    open.node.line,
                    format!("{bracket} opens here, and no {closing} closes it"),
                );
            }
        }
        // Of a text that ends too early the parser reports the line behind the last one.
        let line = at.line().clamp(1, text.lines().count().max(1));
        let problem = format!(
            "this is no YAML ({}): the keys of a section begin in one column, and text with a colon, a bracket, #, &, * or @ \
             needs quotes",
            error.info()
        );
        Fault::at(line, problem)
    }
}
