//! Texts with equal 64-bit FNV-1a, constructed on purpose: a key of that width cannot distinguish
//! them.

use std::sync::Arc;

use tectum::{DType, Kernel, NativeCall};

/// Kernels y[n] = 2·x[n] and y[n] = 3·x[n] over u32 whose texts collide; at most 256 elements in
/// one workgroup.
pub fn colliding_kernels() -> [Arc<Kernel>; 2] {
    fn multiple<const FACTOR: u32>(call: &NativeCall<'_>) {
        call.write::<u32>(1)
            .iter_mut()
            .zip(call.read::<u32>(0))
            .for_each(|(y, x)| *y = FACTOR * x);
    }
    let define = |factor: u32, ending: &str| {
        let kernel = Kernel::define("multiple").read("x", DType::U32).write("y", DType::U32).param("n", DType::U32).body(format!(
            "@compute @workgroup_size(256)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {{\n    if id.x < params.n {{ y[id.x] = {factor}u * x[id.x]; }}\n}}\n//{ending}"
        ));
        kernel
            .native(if factor == 2 {
                multiple::<2>
            } else {
                multiple::<3>
            })
            .expect("well formed")
    };
    let texts = [2, 3].map(|factor| define(factor, ""));
    let [two, three] = endings([texts[0].wgsl().as_bytes(), texts[1].wgsl().as_bytes()]);
    [define(2, &two), define(3, &three)]
}

/// 64-bit FNV-1a.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn step(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Letters of a continuation: with fewer, too few of the differences of two add up to a multiple of
/// 2⁴⁰.
const LETTERS: usize = 12;
/// The low bits of a hash, which depend only on the low bits of the previous one: FNV's prime is
/// 2⁴⁰ + 435.
const LOW: u64 = (1 << 40) - 1;
/// Number of forks, where either text can take either continuation.
const FORKS: usize = 18;

/// Letters `a` to `p`, scattered by a number.
fn letters(number: u32) -> [u8; LETTERS] {
    let scattered = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|place| b'a' + (scattered >> (4 * place + 16) & 15) as u8)
}

fn after(hash: u64, number: u32) -> u64 {
    letters(number).iter().fold(hash, step)
}

/// Two different continuations, one for each of two hashes, that lead to the same low bits: 2²⁰ of
/// one and 2²⁴ of the other contain some.
fn meeting(hashes: [u64; 2]) -> [u32; 2] {
    const COUNT: u32 = 1 << 20;
    let end = |side: usize, number: u32| after(hashes[side], number) & LOW;
    let place = |end: u64| (end >> 18) as usize;
    let mut table = vec![0; 1 << 22];
    (0..COUNT).for_each(|number| table[place(end(0, number))] = number);
    let met = |number: u32| {
        let first = table[place(end(1, number))];
        (end(0, first) == end(1, number)).then_some([first, number])
    };
    (COUNT..1 << 24)
        .find_map(met)
        .expect("2⁴⁴ pairs for 40 bits")
}

/// Endings of letters that give two texts the same 64-bit FNV-1a.
///
/// Once the low 40 bits of both hashes are equal, they stay so through equal letters, and through
/// forks: two continuations from the same low bits to the same low bits. A fork changes the
/// difference of the high 24 bits by its own number, up or down, or not at all if both texts take
/// the same continuation: some of 3¹⁸ choices add up to a difference of 0.
pub fn endings(texts: [&[u8]; 2]) -> [String; 2] {
    let mut hashes = texts.map(fnv1a);
    let first = meeting(hashes);
    hashes = std::array::from_fn(|side| after(hashes[side], first[side]));
    let mut endings = first.map(|number| letters(number).to_vec());
    let mut base = hashes[0];
    let mut forks = Vec::new();
    for _ in 0..FORKS {
        let ways = meeting([base, base]);
        let ends = ways.map(|number| after(base, number));
        forks.push((ways, ends[1].wrapping_sub(ends[0])));
        base = ends[0];
    }
    // From each fork to the end, differences are multiplied by the prime with every letter.
    let scale =
        |forks_left: usize| 0x0000_0100_0000_01b3u64.wrapping_pow((LETTERS * forks_left) as u32);
    let difference = hashes[1].wrapping_sub(hashes[0]).wrapping_mul(scale(FORKS));
    let steps: Vec<u64> = forks
        .iter()
        .enumerate()
        .map(|(index, (_, change))| change.wrapping_mul(scale(FORKS - 1 - index)))
        .collect();
    // Every sum of one half of the forks, and the missing sum from the other half.
    let (front, back) = steps.split_at(FORKS / 2);
    let sum = |steps: &[u64], mut choice: usize| {
        steps.iter().fold(0u64, |sum, step| {
            let way = choice % 3;
            choice /= 3;
            sum.wrapping_add(step.wrapping_mul((way as u64).wrapping_sub(1)))
        })
    };
    let choices = 3usize.pow((FORKS / 2) as u32);
    let mut sums: Vec<(u64, usize)> = (0..choices)
        .map(|choice| (sum(front, choice), choice))
        .collect();
    sums.sort_unstable();
    let found = (0..choices).find_map(|choice| {
        let missing = 0u64
            .wrapping_sub(difference)
            .wrapping_sub(sum(back, choice));
        sums.binary_search_by_key(&missing, |(sum, _)| *sum)
            .ok()
            .map(|at| [sums[at].1, choice])
    });
    let [mut front, mut back] = found.expect("3¹⁸ choices for 24 bits");
    for (index, (ways, _)) in forks.iter().enumerate() {
        let choice = if index < FORKS / 2 {
            &mut front
        } else {
            &mut back
        };
        // Minus one: the second text takes the first continuation, and the first text the second.
        // Plus one: the reverse.
        let taken = [[1, 0], [0, 0], [0, 1]][*choice % 3];
        *choice /= 3;
        endings
            .iter_mut()
            .zip(taken)
            .for_each(|(ending, way)| ending.extend(letters(ways[way])));
    }
    endings.map(|ending| String::from_utf8(ending).expect("letters"))
}

#[test]
fn endings_give_two_texts_one_hash() {
    let texts = ["one text, ", "and another, "];
    let endings = endings(texts.map(str::as_bytes));
    let whole: Vec<String> = texts
        .iter()
        .zip(&endings)
        .map(|(text, ending)| format!("{text}{ending}"))
        .collect();
    assert!(
        whole[0] != whole[1] && fnv1a(whole[0].as_bytes()) == fnv1a(whole[1].as_bytes()),
        "{whole:?}"
    );
}
