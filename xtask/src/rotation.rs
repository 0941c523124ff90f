//! Samples that rotate: what takes too long for every run of CI is run in parts, another each hour.

use std::time::{SystemTime, UNIX_EPOCH};

/// `count` consecutive elements from a position that advances by as many each hour.
///
/// # Errors
/// A clock before 1970.
pub fn of_this_hour<T>(elements: Vec<T>, count: usize) -> Result<Vec<T>, String> {
    Ok(of_hour(elements, count, hour()?))
}

/// Hours since 1970.
///
/// # Errors
/// A clock before 1970.
pub fn hour() -> Result<usize, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_err(|e| format!("the clock: {e}"))?.as_secs();
    Ok((seconds / 3_600) as usize)
}

fn of_hour<T>(mut elements: Vec<T>, count: usize, hour: usize) -> Vec<T> {
    let first = hour * count % elements.len().max(1);
    elements.rotate_left(first);
    elements.truncate(count);
    elements
}

#[cfg(test)]
mod tests {
    use super::of_hour;

    #[test]
    fn every_element_is_in_the_sample_of_some_hour() {
        assert_eq!(of_hour(vec!['a', 'b', 'c', 'd', 'e'], 2, 1), ['c', 'd']);
        assert_eq!(of_hour(vec!['a', 'b', 'c', 'd', 'e'], 2, 2), ['e', 'a']);
        assert!(of_hour(Vec::<char>::new(), 2, 2).is_empty());
        let mut seen: Vec<u32> = (20_000..20_005)
            .flat_map(|hour| of_hour((0..13).collect(), 3, hour))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 13);
    }
}
