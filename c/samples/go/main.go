// Reads a sharded binary fuse filter and a RecSplit function that another program wrote, here `samples/filter.c`:
//
//	PKG_CONFIG_PATH=PREFIX/lib/pkgconfig LD_LIBRARY_PATH=PREFIX/lib go run . FOLDER
package main

/*
#cgo pkg-config: warpset
#include <stdlib.h>
#include <warpset.h>

// Go passes pointers to slices, but no structures that contain such pointers. So these functions fill in the
// descriptions of keys.

static warpset_status contains(const warpset_structure *filter, const uint64_t *keys, size_t len, uint8_t *answers) {
    warpset_keys all = warpset_keys_u64(keys, len);
    return warpset_filter_contains(filter, &all, answers);
}

static warpset_status numbers(const warpset_structure *function, const uint8_t *bytes, const int64_t *offsets,
                              size_t len, uint64_t *numbers) {
    warpset_keys all = warpset_keys_offsets64(bytes, offsets, len);
    return warpset_function_numbers(function, &all, numbers);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Structure is a structure of Warpset. Several goroutines may use it at the same time.
type Structure struct{ handle *C.warpset_structure }

// check calls a function of the library and converts its status. The message of an error belongs to the thread, and a
// goroutine moves between threads, so it is locked meanwhile.
func check(call func() C.warpset_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if call() != C.WARPSET_STATUS_OK {
		return errors.New(C.GoString(C.warpset_last_error()))
	}
	return nil
}

// Map maps the file of a structure. Close unmaps it.
func Map(path string) (*Structure, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	mapped := new(Structure)
	err := check(func() C.warpset_status { return C.warpset_structure_map(name, &mapped.handle) })
	return mapped, err
}

// Close frees the structure, which no goroutine may use any more.
func (s *Structure) Close() error {
	return check(func() C.warpset_status { return C.warpset_structure_free(s.handle) })
}

// Contains writes 1 for each key that may be in the filter, and 0 for others.
func (s *Structure) Contains(keys []uint64, answers []uint8) error {
	if len(keys) == 0 {
		return nil
	}
	_ = answers[len(keys)-1]
	return check(func() C.warpset_status {
		return C.contains(s.handle, (*C.uint64_t)(&keys[0]), C.size_t(len(keys)), (*C.uint8_t)(&answers[0]))
	})
}

// Numbers returns the number of each key. The keys are passed as one array of bytes.
func (s *Structure) Numbers(keys []string) ([]uint64, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var bytes []byte
	offsets := make([]int64, 1, len(keys)+1)
	for _, key := range keys {
		bytes = append(bytes, key...)
		offsets = append(offsets, int64(len(bytes)))
	}
	bytes = append(bytes, 0) // the address of an item needs one, if all strings are empty
	numbers := make([]uint64, len(keys))
	return numbers, check(func() C.warpset_status {
		return C.numbers(s.handle, (*C.uint8_t)(&bytes[0]), (*C.int64_t)(&offsets[0]), C.size_t(len(keys)),
			(*C.uint64_t)(&numbers[0]))
	})
}

// Number of keys in the files.
const n = 100_000

// integer returns key i: the first n are in the filter.
func integer(i int) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 }

func run(folder string) error {
	filter, err := Map(filepath.Join(folder, "fuse.warpset"))
	if err != nil {
		return err
	}
	defer filter.Close()
	keys, answers := make([]uint64, 2*n), make([]uint8, 2*n)
	for i := range keys {
		keys[i] = integer(i)
	}
	if err := filter.Contains(keys, answers); err != nil {
		return err
	}
	members, others := 0, 0
	for i, answer := range answers {
		if i < n {
			members += int(answer)
		} else {
			others += int(answer)
		}
	}
	if members != n || others > n/100 {
		return fmt.Errorf("%d of %d members found, %d of as many others", members, n, others)
	}

	function, err := Map(filepath.Join(folder, "recsplit.warpset"))
	if err != nil {
		return err
	}
	defer function.Close()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("block-%d", i)
	}
	numbers, err := function.Numbers(names)
	if err != nil {
		return err
	}
	taken := make([]bool, n)
	for _, number := range numbers {
		if number >= n || taken[number] {
			return fmt.Errorf("number %d occurs twice, or is too large", number)
		}
		taken[number] = true
	}

	if _, err := Map(filepath.Join(folder, "absent")); err == nil {
		return errors.New("a file that does not exist was opened")
	}
	fmt.Printf("Go: %d members, %d false positives, %d numbers\n", members, others, len(numbers))
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sample FOLDER")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
