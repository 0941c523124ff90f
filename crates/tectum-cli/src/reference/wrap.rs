//! The width of prose in Markdown pages. `xtask` compiles this file too: for the pages that it
//! writes, and for the check of all documents.

/// Maximum characters of a line of prose.
pub const WIDTH: usize = 100;

/// A page with its paragraphs and items of lists filled to [`WIDTH`]. Headings, tables, comments,
/// quotes and fenced blocks keep their lines.
pub fn wrapped(page: &str) -> String {
    let mut text = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut is_fenced = false;
    for line in page.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        is_fenced ^= is_fence;
        if is_fenced || is_fence || !is_prose(start) {
            text += &filled(&std::mem::take(&mut paragraph));
            text += line;
            text.push('\n');
            continue;
        }
        if marker(start) > 0 {
            text += &filled(&std::mem::take(&mut paragraph));
        }
        paragraph.push(line);
    }
    text + &filled(&paragraph)
}

fn is_prose(start: &str) -> bool {
    !start.is_empty()
        && !["#", "|", "<!--", ">"]
            .iter()
            .any(|sign| start.starts_with(sign))
}

/// Length of the marker of a list's item with its blank; 0 for a line that begins no item.
fn marker(start: &str) -> usize {
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    let signs: &[&str] = if digits == 0 {
        &["- ", "* ", "+ "]
    } else {
        &[". ", ") "]
    };
    let has_sign = signs.iter().any(|sign| start[digits..].starts_with(sign));
    if has_sign { digits + 2 } else { 0 }
}

/// The lines of one paragraph, or of one item of a list, broken where they become too wide.
fn filled(lines: &[&str]) -> String {
    let Some(first) = lines.first() else {
        return String::new();
    };
    let indent = first.len() - first.trim_start().len();
    let joined: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let joined = joined.join(" ");
    let (sign, words) = joined.split_at(marker(&joined));
    let margin = " ".repeat(indent + sign.len());
    let mut text = " ".repeat(indent) + sign;
    let mut width = margin.len();
    for (index, token) in tokens(words).iter().enumerate() {
        let length = token.chars().count();
        if index > 0 && width + 1 + length > WIDTH {
            text.push('\n');
            text += &margin;
            width = margin.len();
        } else if index > 0 {
            text.push(' ');
            width += 1;
        }
        text += token;
        width += length;
    }
    text + "\n"
}

/// The parts of a text that stay on one line: words, spans of code, images, and words that
/// Markdown would read as the start of something else, with the word before.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_whitespace() {
        match tokens.last_mut() {
            Some(last) if is_open || !is_prose(word) || marker(&format!("{word} ")) > 0 => {
                last.push(' ');
                last.push_str(word);
            }
            _ => tokens.push(word.to_owned()),
        }
        is_open = tokens.last().is_some_and(|last| is_unfinished(last));
    }
    tokens
}

/// Whether a token ends within a span of code or an image.
fn is_unfinished(token: &str) -> bool {
    let is_in_code = token.matches('`').count() % 2 == 1;
    is_in_code || (token.starts_with("![") && !token.contains(')'))
}

#[cfg(test)]
mod tests {
    use super::{WIDTH, wrapped};

    /// Words of a paragraph wider than one line: of ten characters each with the blank.
    fn words(count: usize) -> String {
        vec!["abcdefghi"; count].join(" ")
    }

    #[test]
    fn paragraphs_and_items_are_filled_and_everything_else_keeps_its_lines() {
        let line = words(10);
        let short = words(9);
        let page = format!(
            "# {line} b\n\n{line} b\nc\n\n- {line} b\n- c\n  1. {line}\n\n| {line} | b |\n<!-- {line} -->\n\n```text\n{line} b\n- c\n```\n{line}"
        );
        let expected = format!(
            "# {line} b\n\n{line}\nb c\n\n- {short}\n  abcdefghi b\n- c\n  1. {short}\n     abcdefghi\n\n| {line} | b |\n<!-- {line} -->\n\n```text\n{line} b\n- c\n```\n{line}\n"
        );
        assert_eq!(line.len(), WIDTH - 1);
        assert_eq!(wrapped(&page), expected);
        assert_eq!(
            wrapped(&expected),
            expected,
            "a wrapped page stays as it is"
        );
    }

    #[test]
    fn code_images_and_signs_of_markdown_are_not_moved_to_the_start_of_a_line() {
        let short = words(9);
        for (end, wrapped_end) in [
            ("`a b` cdefghi", " `a b`\ncdefghi"),
            ("ab `c d e f`", " ab\n`c d e f`"),
            ("![a b c](d.png) e", "\n![a b c](d.png) e"),
            ("[a b c](d.md)", " [a b\nc](d.md)"),
            ("abcdefghi - b", "\nabcdefghi - b"),
            ("abcdefghi 12. b", "\nabcdefghi 12. b"),
            ("abcdefghi # b", "\nabcdefghi # b"),
            ("abcdefghi 12.5 b", " abcdefghi\n12.5 b"),
        ] {
            let text = wrapped(&format!("{short} {end}"));
            assert_eq!(text, format!("{short}{wrapped_end}\n"), "{end}");
        }
        let token = format!("`{short} {short}`\n");
        assert_eq!(wrapped(&token), token);
    }

    #[test]
    fn width_is_counted_in_characters() {
        let text = format!("{}\n", vec!["é"; WIDTH / 2].join(" "));
        assert_eq!(wrapped(&text), text);
    }
}
