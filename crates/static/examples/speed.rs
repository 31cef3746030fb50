use std::time::Instant;
use warpset_static::{StaticMap, StaticSet};
fn key(i: u64) -> u64 { let mut h = i.wrapping_add(1).wrapping_mul(0x9e3779b97f4a7c15); h ^= h >> 32; h = h.wrapping_mul(0xd6e8feb86659fd93); h ^= h >> 32; h }
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let threads: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
        let keys: Vec<u64> = (0..n).map(key).collect();
        let t = Instant::now();
        let set = StaticSet::builder().build_from(&keys).unwrap();
        println!("build {:.1} ns/key, seed {}, {:.2} bits/key load {:.3}", t.elapsed().as_nanos() as f64 / n as f64, set.seed(), set.bits_per_key(), set.load_factor());
        let mut out = vec![0u8; keys.len()];
        for _ in 0..2 {
        let mut q: Vec<u64> = (0..n).map(|i| key(i.wrapping_mul(0x5851f42d4c957f2d) % (n))).collect();
        let t = Instant::now(); set.contains_bytes_bulk_into(&q, &mut out).unwrap();
        println!("hits {:.2} ns; found {}", t.elapsed().as_nanos() as f64 / n as f64, out.iter().map(|&b| b as u64).sum::<u64>());
        q.iter_mut().for_each(|k| *k = key(*k));
        let t = Instant::now(); set.contains_bytes_bulk_into(&q, &mut out).unwrap();
        println!("misses {:.2} ns; found {}", t.elapsed().as_nanos() as f64 / n as f64, out.iter().map(|&b| b as u64).sum::<u64>());
        let t = Instant::now(); let c = q.iter().filter(|&&k| set.contains(k)).count();
        println!("one by one misses {:.2} ns; {c}", t.elapsed().as_nanos() as f64 / n as f64);
        }
        if n <= 20_000_000 {
        let narrow: Vec<u32> = keys.iter().map(|&k| (k >> 32) as u32).collect();
        let t = Instant::now();
        let map = StaticMap::<u32, u64>::builder().build_from(&narrow, &keys).unwrap();
        println!("map build {:.1} ns/key, seed {}, {:.2} bits/key load {:.3} len {}", t.elapsed().as_nanos() as f64 / n as f64, map.seed(), map.bits_per_key(), map.load_factor(), map.len());
        let mut v = vec![0u64; keys.len()];
        let t = Instant::now(); let b = map.get_bulk_into(&narrow, &mut v).unwrap();
        println!("map get {:.2} ns; found {}", t.elapsed().as_nanos() as f64 / n as f64, b.count_ones());
        }
    });
}
