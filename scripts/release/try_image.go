package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// tryImage pushes the layout to a registry on this machine, which keeps it in memory, lets
// crane check it there, and runs the programs in the image of each machine.
func (r *release) tryImage(ctx context.Context, path, dir string) (said string, err error) {
	tools, err := r.buildTools(ctx)
	if err != nil {
		return "", err
	}
	layout := filepath.Join(dir, "layout")
	if err := unpackTar(path, layout); err != nil {
		return "", err
	}
	crane := filepath.Join(tools, "crane")
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	address, err := serveRegistry(ctx, crane)
	if err != nil {
		return "", err
	}
	name := address + "/weir:" + r.version
	for _, args := range [][]string{{"push", layout, name}, {"validate", "--remote", name}} {
		cmd := exec.CommandContext(ctx, crane, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("crane %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	var all []string
	for _, p := range r.platforms {
		system, machine, _ := strings.Cut(p, "/")
		if system != "linux" {
			continue
		}
		root := filepath.Join(dir, machine)
		if _, err := commandOutput(ctx, dir, nil, crane, "export", "--platform", p, name, root+".tar"); err != nil {
			return "", err
		}
		if err := unpackTar(root+".tar", root); err != nil {
			return "", err
		}
		said, err := r.tryPrograms(ctx, filepath.Join(root, "usr", "bin"), "linux", machine)
		if err != nil {
			return "", err
		}
		pem, err := os.ReadFile(filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"))
		if err != nil {
			return "", err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return "", fmt.Errorf("it trusts no authority")
		}
		all = append(all, machine+" "+said)
	}
	return "validated by crane, " + strings.Join(all, ", "), nil
}

var serving = regexp.MustCompile(`port (\d+)|127\.0\.0\.1:(\d+)`)

// serveRegistry starts a registry, which ends with ctx, and returns its address.
func serveRegistry(ctx context.Context, crane string) (address string, err error) {
	cmd := exec.CommandContext(ctx, crane, "registry", "serve", "--address", "127.0.0.1:0")
	errs, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	go cmd.Wait()
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			return "127.0.0.1:" + m[1] + m[2], nil
		}
	}
	return "", fmt.Errorf("crane serves no registry")
}
