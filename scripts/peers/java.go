package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// javaMissing says what a contender in Java lacks: a compiler, or the jars of a distribution, whose directory a
// variable names.
func javaMissing(variable, jars string) error {
	if _, err := exec.LookPath("javac"); err != nil {
		return errors.New("no javac: install a JDK, 17 or later")
	}
	found, err := filepath.Glob(filepath.Join(os.Getenv(variable), jars, "*.jar"))
	if err != nil || os.Getenv(variable) == "" || len(found) == 0 {
		return fmt.Errorf("no jars: let %s name the directory of a distribution, with %s/*.jar", variable, jars)
	}
	return nil
}

// compileJava compiles a program of scripts/peers/java once, and returns the class path to run it with.
func (p *peers) compileJava(name, jars string) (string, error) {
	classes := filepath.Join(p.dir, name)
	path := classes + string(os.PathListSeparator) + filepath.Join(jars, "*")
	if _, err := os.Stat(classes); err == nil {
		return path, nil
	}
	source := filepath.Join("scripts", "peers", "java", name+".java")
	if out, err := exec.Command("javac", "-cp", filepath.Join(jars, "*"), "-d", classes, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return path, nil
}

func (p *peers) loadFlink(recording, dir string) (*exec.Cmd, error) {
	path, err := p.compileJava("Flink", filepath.Join(os.Getenv("FLINK_HOME"), "lib"))
	if err != nil {
		return nil, err
	}
	args := []string{"-Xmx2g"}
	for _, open := range []string{"java.lang", "java.util", "java.util.concurrent"} { // what Flink's own scripts open
		args = append(args, "--add-opens=java.base/"+open+"=ALL-UNNAMED")
	}
	return exec.Command("java", append(args, "-cp", path, "Flink", recording, dir)...), nil
}

func (p *peers) loadKafkaStreams(recording, dir string) (*exec.Cmd, error) {
	path, err := p.compileJava("KafkaStreamsCounts", filepath.Join(os.Getenv("KAFKA_HOME"), "libs"))
	if err != nil {
		return nil, err
	}
	port, err := freePorts()
	if err != nil {
		return nil, err
	}
	return exec.Command("java", "-Xmx1g", "-cp", path, "KafkaStreamsCounts", recording, dir, strconv.Itoa(port)), nil
}

// freePorts returns the first of two free ports, one after the other.
func freePorts() (int, error) {
	for range 100 {
		a, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := a.Addr().(*net.TCPAddr).Port
		b, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		a.Close()
		if err == nil {
			b.Close()
			return port, nil
		}
	}
	return 0, errors.New("no two free ports after each other")
}

// dumpFiles prints the files that a contender wrote its counts into.
func dumpFiles(_ *peers, dir string, out io.Writer) error {
	return filepath.WalkDir(filepath.Join(dir, "derived"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if strings.Contains(e.Name(), "inprogress") {
			return fmt.Errorf("%s was not finished", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	})
}
