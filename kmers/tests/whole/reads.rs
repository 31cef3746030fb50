//! Helpers of the tests and of the example `accuracy` for generated reads.

/// Turns bases into those of the other strand; other letters stay.
pub fn reverse_complement(bases: &mut [u8]) {
    bases.reverse();
    for base in bases.iter_mut() {
        *base = match *base {
            b'A' => b'T',
            b'C' => b'G',
            b'G' => b'C',
            b'T' => b'A',
            other => other,
        };
    }
}

/// Returns FASTQ of reads with numbers as names.
pub fn fastq(reads: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for (i, read) in reads.iter().enumerate() {
        text.extend_from_slice(format!("@{i}\n").as_bytes());
        text.extend_from_slice(read);
        text.extend_from_slice(b"\n+\n");
        text.resize(text.len() + read.len(), b'I');
        text.push(b'\n');
    }
    text
}
