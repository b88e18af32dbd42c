package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile puts data at path as a whole: whoever reads it, also after a crash,
// finds the old file or the new one. It keeps the permissions of a file that is
// there. Two runs at once do not disturb each other: each has a file of its own
// until the rename.
func writeFile(path string, data []byte) error {
	if err := replace(path, data); err != nil {
		return fmt.Errorf("write %s (the file is as it was): %w", path, err)
	}
	return nil
}

func replace(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	// Hidden and without .go: no tool takes what a killed run leaves for code.
	temp := filepath.Join(dir, ".fsmgen-"+rand.Text()+".tmp")
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temp)))
		}
	}()
	if err := fill(file, path, data); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDirectory(dir)
}

// fill writes and syncs the new file, with the permissions of the old one.
func fill(file *os.File, old string, data []byte) error {
	if info, err := os.Lstat(old); err == nil {
		if err := file.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

// syncDirectory makes a rename durable. Systems that cannot sync a directory
// order the two themselves.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
