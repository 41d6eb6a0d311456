//go:build cgo

package main

// withC reports whether the C driver is available in this build.
const withC = true
