//! Numbers of things in words.

use std::fmt::Display;

/// A number and a noun, of which `noun` is the singular: `1 run`, `2 runs`.
pub fn counted(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let ending = match noun {
        _ if number == "1" => "",
        _ if ["s", "x", "ch", "sh"]
            .iter()
            .any(|ending| noun.ends_with(ending)) =>
        {
            "es"
        }
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular() {
        assert_eq!(
            [counted(0, "run"), counted(1, "run"), counted(2, "run")],
            ["0 runs", "1 run", "2 runs"]
        );
        assert_eq!(
            [
                counted(1, "launch"),
                counted(2, "launch"),
                counted(3, "code object")
            ],
            ["1 launch", "2 launches", "3 code objects"]
        );
    }
}
