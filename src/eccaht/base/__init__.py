"""What every floor needs: arrays, files, archives, texts, times, tables, figures. It knows no stream and no plant."""
