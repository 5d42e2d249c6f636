"""Many rows at a time: frames in and out, by COPY and by pages."""
