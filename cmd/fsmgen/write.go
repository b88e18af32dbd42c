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
	return replace(path, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
}

// replace is writeFile with fill to write the content.
func replace(path string, fill func(*os.File) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w; nothing was changed", path, err)
		}
	}()
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
	if err := errors.Join(keepMode(file, path), fill(file), file.Sync()); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	syncDirectory(dir)
	return nil
}

// keepMode gives file the permissions of the file it will replace, if there is one.
func keepMode(file *os.File, old string) error {
	info, err := os.Lstat(old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Chmod(info.Mode().Perm())
}

// syncDirectory makes a rename durable where the system can do that. The file is
// whole either way, so a failure is none of the command.
func syncDirectory(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
