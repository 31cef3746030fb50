use std::time::Instant;
use warpset_sequence::Minimizers;
fn main() {
    let n: usize = std::env::args().nth(1).map_or(16_000_000, |a| a.parse().unwrap());
    let mut s = 1u64;
    let letters: Vec<u8> = (0..n)
        .map(|_| {
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(s >> 60) as usize & 3]
        })
        .collect();
    let m = Minimizers::deacon(31, 15).unwrap();
    for len in [150, 1000, 15000] {
        let seqs: Vec<&[u8]> = letters.chunks(len).collect();
        let (mut kmers, mut ends) = (Vec::new(), Vec::new());
        let (mut one, mut bulk) = (f64::MAX, f64::MAX);
        let (mut a, mut b) = (0, 0);
        let only = std::env::args().nth(2).is_some();
        for _ in 0..5 {
            let t = Instant::now();
            a = 0;
            if !only {
                for part in seqs.chunks(1_000_000 / len) {
                    kmers.clear();
                    for s in part {
                        m.kmers_into(s, &mut kmers);
                    }
                    a += kmers.len();
                }
            }
            one = one.min(t.elapsed().as_secs_f64());
            let t = Instant::now();
            b = 0;
            for part in seqs.chunks(1_000_000 / len) {
                kmers.clear();
                ends.clear();
                m.kmers_bulk_into(part, &mut kmers, &mut ends);
                b += kmers.len();
            }
            bulk = bulk.min(t.elapsed().as_secs_f64());
        }
        println!("{len}: one {:.3} Gbp/s, bulk {:.3} Gbp/s, {a} {b}", n as f64 / one / 1e9, n as f64 / bulk / 1e9);
    }
}
