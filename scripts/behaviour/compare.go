package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// errDiffers is the result of a comparison that found differences.
var errDiffers = errors.New("the two recordings differ")

// compareRecordings prints the first lines in which the files of two recordings differ.
func compareRecordings(before, after, names string) error {
	rename, err := readRenames(names)
	if err != nil {
		return err
	}
	files, err := unionOfFiles(before, after)
	if err != nil {
		return err
	}
	differ := 0
	for _, name := range files {
		a, errA := os.ReadFile(filepath.Join(before, name))
		b, errB := os.ReadFile(filepath.Join(after, name))
		if err := errors.Join(errA, errB); err != nil {
			fmt.Printf("%s: %v\n", name, err)
			differ++
			continue
		}
		if a = rename(a); !bytes.Equal(a, b) {
			differ++
			showDifference(name, a, b)
		}
	}
	fmt.Printf("%d of %d files differ\n", differ, len(files))
	if differ > 0 {
		return errDiffers
	}
	return nil
}

// showDifference prints the first line in which a file differs, and how many lines differ.
func showDifference(name string, a, b []byte) {
	as, bs := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	at := 0
	for at < min(len(as), len(bs)) && as[at] == bs[at] {
		at++
	}
	line := func(lines []string) string {
		if at >= len(lines) {
			return "(the file ends)"
		}
		return fmt.Sprintf("%.300s", lines[at])
	}
	fmt.Printf("%s:%d (%d and %d lines)\n  old %s\n  new %s\n", name, at+1, len(as), len(bs), line(as), line(bs))
}

// unionOfFiles returns the sorted names of the files that exist in any of the directories.
func unionOfFiles(dirs ...string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				var name string
				name, err = filepath.Rel(dir, path)
				out = append(out, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// readRenames reads a file of old and new words and returns a function that replaces them. It
// tries longer words first.
func readRenames(file string) (func([]byte) []byte, error) {
	if file == "" {
		return func(b []byte) []byte { return b }, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	words, olds := map[string]string{}, []string{}
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		if in.Text() == "" {
			continue
		}
		from, to, ok := strings.Cut(in.Text(), " ")
		if !ok || from == "" {
			return nil, fmt.Errorf("%s:%d: want an old word, a space and the new word", file, n)
		}
		words[from], olds = to, append(olds, from)
	}
	if err := in.Err(); err != nil || len(olds) == 0 {
		return func(b []byte) []byte { return b }, err
	}
	slices.SortFunc(olds, func(a, b string) int { return len(b) - len(a) })
	for i, old := range olds {
		olds[i] = wholeWord(old)
	}
	word := regexp.MustCompile(strings.Join(olds, "|"))
	return func(b []byte) []byte {
		return word.ReplaceAllFunc(b, func(old []byte) []byte { return []byte(words[string(old)]) })
	}, nil
}

// wholeWord returns a pattern that matches a word only as a whole word.
func wholeWord(word string) string {
	pattern := regexp.QuoteMeta(word)
	if letter.MatchString(word[:1]) {
		pattern = `\b` + pattern
	}
	if letter.MatchString(word[len(word)-1:]) {
		pattern += `\b`
	}
	return pattern
}

var letter = regexp.MustCompile(`\w`)
