//! The known name that a misspelt one probably means.

/// `, perhaps "NAME"` for the known name that is nearest to a misspelt one; empty if none is near.
pub(crate) fn suggestion<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(", perhaps {name:?}"))
}

/// The known name with the fewest edits from a given one: at most one in three of its letters, and
/// fewer than it has.
pub fn nearest<'n>(given: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let counted = known.into_iter().map(|name| (edits(given, name), name));
    let is_near = |(edits, name): &(usize, &str)| {
        let letters = name.chars().count();
        *edits <= (letters / 3).max(1) && *edits < letters
    };
    counted
        .filter(is_near)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Letters that are inserted, removed, replaced or exchanged with their neighbour.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: [Vec<usize>; 2] = [Vec::new(), (0..=to.len()).collect()];
    for (i, a) in from.iter().enumerate() {
        let [before, last] = &rows;
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            let is_exchanged = i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b;
            let exchanged = if is_exchanged {
                before[j - 1] + 1
            } else {
                usize::MAX
            };
            row.push(replaced.min(exchanged).min(last[j + 1] + 1).min(row[j] + 1));
        }
        let [_, last] = rows;
        rows = [last, row];
    }
    rows[1][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{edits, nearest, suggestion};

    #[test]
    fn letters_that_differ_are_counted() {
        let cases = [
            ("", "abc", 3),
            ("brian", "brain", 1),
            ("lop", "loop", 1),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ];
        assert_eq!(
            cases.map(|(from, to, _)| edits(from, to)),
            cases.map(|(.., count)| count)
        );
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let known = ["name", "body", "brain", "loop"];
        assert_eq!(
            ["brian", "lop", "bdy", "xyz", ""].map(|given| nearest(given, known)),
            [Some("brain"), Some("loop"), Some("body"), None, None]
        );
        assert_eq!(
            (suggestion("brian", known), suggestion("xyz", known)),
            (", perhaps \"brain\"".to_owned(), String::new())
        );
        assert_eq!(nearest("z", ["x", "y"]), None);
    }
}
