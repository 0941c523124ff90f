//! Samples that rotate: what takes too long for every run of CI is run in parts, another each day.

use std::time::{SystemTime, UNIX_EPOCH};

/// `count` consecutive elements from a position that advances by as many each day.
///
/// # Errors
/// A clock before 1970.
pub fn of_today<T>(elements: Vec<T>, count: usize) -> Result<Vec<T>, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_err(|e| format!("the clock: {e}"))?.as_secs();
    Ok(of_day(elements, count, (seconds / 86_400) as usize))
}

fn of_day<T>(mut elements: Vec<T>, count: usize, day: usize) -> Vec<T> {
    let first = day * count % elements.len().max(1);
    elements.rotate_left(first);
    elements.truncate(count);
    elements
}

#[cfg(test)]
mod tests {
    use super::of_day;

    #[test]
    fn every_element_is_in_the_sample_of_some_day() {
        assert_eq!(of_day(vec!['a', 'b', 'c', 'd', 'e'], 2, 1), ['c', 'd']);
        assert_eq!(of_day(vec!['a', 'b', 'c', 'd', 'e'], 2, 2), ['e', 'a']);
        assert!(of_day(Vec::<char>::new(), 2, 2).is_empty());
        let mut seen: Vec<u32> = (20_000..20_005)
            .flat_map(|day| of_day((0..13).collect(), 3, day))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 13);
    }
}
