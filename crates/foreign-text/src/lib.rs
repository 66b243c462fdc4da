//! Text that another program or machine wrote.

/// Whether a terminal or a log would obey the character: control characters, and invisible ones that reorder
/// or break the text around them, or that carry a text of their own (tags).
#[must_use]
pub fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffc}' | '\u{fffe}' | '\u{ffff}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}
